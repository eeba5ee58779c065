use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn authority() -> runtime::certs::CertPair {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    runtime::certs::make_authority("test", now).expect("a certificate")
}

fn data(pem: &str) -> String {
    STANDARD.encode(pem)
}

/// A valid kubeconfig.
fn good() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{ "name": "here", "context": {
            "cluster": "east", "user": "manager", "namespace": "team" } }],
        "clusters": [{ "name": "east", "cluster": {
            "server": "https://East.example.com:6443/k8s/clusters/c-1",
            "certificate-authority-data": data(&authority().certificate) } }],
        "users": [{ "name": "manager", "user": { "token": "hush-hush" } }],
    })
}

/// The valid kubeconfig with one field of the first user, cluster or context, or of the file, replaced.
fn with(field: &str, value: Value) -> Value {
    let mut config = good();
    let (parent, name) = field.rsplit_once('/').expect("a path");
    config.pointer_mut(parent).expect("a parent")[name] = value;
    config
}

fn read(config: &Value) -> Result<Kubeconfig, KubeconfigRefused> {
    Kubeconfig::read(config.to_string().as_bytes())
}

fn refused(config: &Value) -> (&'static str, String) {
    let refused = read(config).expect_err("refused");
    (refused.reason(), refused.message())
}

/// A kubeconfig with a token, or with a client certificate and without an authority.
pub(crate) fn sample(certificate: bool) -> Kubeconfig {
    read(&if certificate { by_certificate(&authority()) } else { good() }).expect("accepted")
}

/// The text of the one with a token.
pub(crate) fn sample_text() -> String {
    good().to_string()
}

#[test]
fn the_expiry_of_a_client_certificate_is_known() {
    let expires = sample(true).certificate_expires().expect("a time");
    assert!(expires > "2030-01-01T00:00:00Z".parse().expect("a time"), "{expires}");
    assert_eq!(sample(false).certificate_expires(), None);
}

fn by_certificate(pair: &runtime::certs::CertPair) -> Value {
    let folded = |pem: &str| {
        let text = data(pem);
        let (head, tail) = text.split_at(20);
        format!("{head}\n  {tail}\n")
    };
    let user = json!({
        "client-certificate-data": folded(&pair.certificate),
        "client-key-data": folded(&pair.key),
    });
    let mut config = with("/users/0/user", user);
    config["clusters"][0]["cluster"]["certificate-authority-data"] = json!("");
    config
}

const USER: &str = "/users/0/user";
const CLUSTER: &str = "/clusters/0/cluster";

#[test]
fn safe_fields_are_used() {
    let config = read(&good()).expect("accepted");
    assert_eq!(config.server.to_string(), "https://East.example.com:6443/k8s/clusters/c-1");
    assert_eq!(config.roots.map(|roots| roots.len()), Some(1));
    assert_eq!(config.token.expect("a token").reveal(), "hush-hush");
    assert_eq!(config.namespace.as_deref(), Some("team"));
    assert!(config.identity.is_none() && config.tls_server_name.is_none());
}

#[test]
fn data_may_be_folded_and_a_certificate_may_replace_a_token() {
    let pair = authority();
    let config = read(&by_certificate(&pair)).expect("accepted");
    assert_eq!(config.identity.expect("a certificate").key.reveal(), data(&pair.key));
    assert!(config.roots.is_none() && config.token.is_none());
}

#[test]
fn empty_fields_count_as_absent() {
    for (parent, field, value) in [
        (USER, "exec", json!(null)),
        (USER, "tokenFile", json!("")),
        (USER, "as-groups", json!([])),
        (CLUSTER, "insecure-skip-tls-verify", json!(false)),
        (CLUSTER, "proxy-url", json!("")),
        (CLUSTER, "disable-compression", json!(true)),
    ] {
        assert!(read(&with(&format!("{parent}/{field}"), value)).is_ok(), "{field}");
    }
}

#[test]
fn unsafe_fields_are_refused_with_kueues_messages() {
    let cases = [
        (USER, "tokenFile", json!("/token"), "tokenFile is not allowed"),
        (USER, "username", json!("me"), "basic auth is not allowed"),
        (USER, "password", json!(1234), "basic auth is not allowed"),
        (USER, "exec", json!({ "command": "rm" }), "exec plugins are not allowed"),
        (USER, "exec", json!({}), "exec plugins are not allowed"),
        (USER, "auth-provider", json!({ "name": "gcp" }), "auth providers are not allowed"),
        (
            CLUSTER,
            "insecure-skip-tls-verify",
            json!(true),
            "insecure TLS verification is not allowed for cluster east",
        ),
        (
            CLUSTER,
            "certificate-authority",
            json!("/ca.crt"),
            "certificate-authority file paths are not allowed, use certificate-authority-data for cluster east",
        ),
        (CLUSTER, "server", json!(""), "server URL is required for cluster east"),
        (CLUSTER, "server", json!(null), "server URL is required for cluster east"),
        (CLUSTER, "server", json!("https://bad_host:6443"), "untrusted server endpoint"),
        (CLUSTER, "server", json!("http://east:6443"), "untrusted server endpoint"),
        (CLUSTER, "server", json!("east:6443"), "untrusted server endpoint"),
        (CLUSTER, "server", json!("https://hush@east"), "untrusted server endpoint"),
        (CLUSTER, "server", json!("https://east?hush"), "untrusted server endpoint"),
        (
            USER,
            "client-certificate",
            json!("/crt"),
            "client certificate file paths are not allowed, use client-certificate-data for user manager",
        ),
        (
            USER,
            "client-key",
            json!("/key"),
            "client certificate file paths are not allowed, use client-key-data for user manager",
        ),
        (USER, "as", json!("root"), "impersonation is not allowed for user manager"),
        (
            USER,
            "as-groups",
            json!(["system:masters"]),
            "impersonation is not allowed for user manager",
        ),
        (USER, "as-uid", json!("0"), "impersonation is not allowed for user manager"),
        (
            USER,
            "as-user-extra",
            json!({ "scopes": ["all"] }),
            "impersonation is not allowed for user manager",
        ),
        (CLUSTER, "proxy-url", json!("http://p"), "proxies are not allowed for cluster east"),
    ];
    for (parent, field, value, text) in cases {
        let (reason, message) = refused(&with(&format!("{parent}/{field}"), value));
        assert_eq!(message, format!("load client config failed: {text}"));
        assert_eq!(reason, "InsecureKubeConfig", "{field}");
    }
}

#[test]
fn hosts_are_addresses_or_names() {
    for (server, good) in [
        ("https://127.0.0.1:6443", true),
        ("https://[::1]:6443", true),
        ("https://UPPER.example", true),
        ("https://[::1", false),
        ("https://a..b", false),
        ("https:///path", false),
    ] {
        let config = with("/clusters/0/cluster/server", json!(server));
        assert_eq!(read(&config).is_ok(), good, "{server}");
    }
}

#[test]
fn users_and_clusters_outside_the_current_context_are_validated_too() {
    for (list, entry, text) in [
        ("users", json!({ "user": { "exec": { "command": "rm" } } }), "exec plugins"),
        ("users", json!({ "user": { "password": "hush" } }), "basic auth"),
        ("users", json!({ "user": { "tokenFile": "/t" } }), "tokenFile is not allowed"),
        ("users", json!({ "user": { "client-key": "/k" } }), "certificate file paths"),
        ("users", json!({ "user": { "client-certificate": "/c" } }), "certificate file paths"),
        ("users", json!({ "user": { "as-uid": "0" } }), "impersonation is not allowed"),
        (
            "clusters",
            json!({ "cluster": { "server": "https://x", "certificate-authority": "/ca" } }),
            "certificate-authority file paths are not allowed",
        ),
        (
            "clusters",
            json!({ "cluster": { "server": "https://x", "proxy-url": "http://p" } }),
            "proxies are not allowed",
        ),
        (
            "clusters",
            json!({ "cluster": { "server": "https://x", "insecure-skip-tls-verify": true } }),
            "insecure TLS verification",
        ),
        ("clusters", json!({ "cluster": { "server": "" } }), "server URL is required"),
        ("clusters", json!({ "cluster": { "server": "ftp://x" } }), "untrusted server endpoint"),
    ] {
        let mut config = good();
        config[list].as_array_mut().expect("a list").push(entry);
        let (reason, message) = refused(&config);
        assert_eq!(reason, "InsecureKubeConfig");
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn an_incomplete_or_malformed_kubeconfig_is_refused() {
    let no_user = json!([]);
    for (config, text) in [
        (with("/current-context", json!("there")), "context \"there\" is not in the kubeconfig"),
        (with("/users", no_user), "user \"manager\" is not in the kubeconfig"),
        (with("/contexts/0/context/cluster", json!("x")), "cluster \"x\" is not in the kubeconfig"),
        (with("/users/0/user", json!({})), "neither a token nor a client certificate"),
        (with("/users/0/user/client-key-data", json!("aHVzaA==")), "neither a token"),
        (with("/users/0/user/token", json!("hush\nhush")), "token of \"manager\" is not"),
        (
            with("/clusters/0/cluster/certificate-authority-data", json!("hush")),
            "certificate-authority-data of \"east\" is not base64 of PEM certificates",
        ),
        (
            with("/users/0/user/token", json!(["hush"])),
            "failed to parse kubeconfig: line 1, column",
        ),
    ] {
        let (reason, message) = refused(&config);
        assert_eq!(reason, "BadKubeConfig", "{message}");
        assert!(message.starts_with("load client config failed: "), "{message}");
        assert!(message.contains(text), "{message}");
        assert!(!message.contains("hush"), "{message}");
    }
    for text in [&b"\xff\xfe"[..], b"hush: [", b"hush", b""] {
        let refused = Kubeconfig::read(text).expect_err("no kubeconfig");
        assert_eq!(refused.reason(), "BadKubeConfig");
        assert!(!refused.message().contains("hush"), "{refused}");
    }
}

/// A kubeconfig in which the user is this YAML.
fn with_user(user: &str) -> String {
    with(USER, json!("HERE")).to_string().replace("\"HERE\"", &format!("{{{user}}}"))
}

#[test]
fn a_key_that_is_there_twice_hides_nothing() {
    for user in [
        "token: a, token: hush",
        "exec: {command: rm}, token: a, exec: null",
        "token: a, exec: null, exec: {command: rm}",
    ] {
        let refused = Kubeconfig::read(with_user(user).as_bytes()).expect_err(user);
        assert!(!refused.message().contains("hush"), "{refused}");
    }
}

#[test]
fn aliases_that_grow_without_end_are_refused_at_once() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    text += "users: *a11\n";
    let begun = std::time::Instant::now();
    let refused = Kubeconfig::read(text.as_bytes()).expect_err("refused");
    assert_eq!(refused.reason(), "BadKubeConfig", "{refused}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn large_and_deep_texts_are_refused_without_their_secrets() {
    let deep = "[".repeat(100_000);
    let many = format!("users: [{}]", "{name: a, user: {token: hush}},".repeat(200_000));
    for (text, what) in [(deep, "deep"), (many, "many")] {
        let refused = Kubeconfig::read(text.as_bytes()).expect_err(what);
        assert!(!refused.message().contains("hush"), "{what}: {refused}");
    }
    let long = with_user(&format!("token: {}", "hush".repeat(1 << 20)));
    let shown = match Kubeconfig::read(long.as_bytes()) {
        Ok(config) => format!("{config:?}"),
        Err(refused) => refused.message(),
    };
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn other_refusals_have_kueues_messages_and_reasons() {
    for (refused, reason, text) in [
        (KubeconfigRefused::NoSecret("w".into()), "BadKubeConfig", "Secret \"w\" not found"),
        (
            KubeconfigRefused::NoKey("w".into()),
            "BadKubeConfig",
            "key \"kubeconfig\" not found in secret \"w\"",
        ),
        (
            KubeconfigRefused::ClusterProfile,
            "MultiKueueClusterProfileFeatureDisabled",
            "MultiKueueClusterProfile feature gate is disabled",
        ),
    ] {
        assert_eq!(refused.reason(), reason);
        assert_eq!(refused.message(), format!("load client config failed: {text}"));
    }
}

proptest! {
    /// No credential is printed, wherever it is and whatever is done with the text.
    #[test]
    fn no_credential_is_ever_printed(
        secret in "[a-zA-Z0-9+/]{12,40}",
        field in prop::sample::select(vec![
            "/users/0/user/token",
            "/users/0/user/password",
            "/users/0/user/client-key-data",
            "/users/0/user/client-certificate-data",
            "/users/0/user/exec",
            "/users/0/user/auth-provider",
            "/users/0/user/unheard-of",
            "/clusters/0/cluster/certificate-authority-data",
            "/clusters/0/cluster/proxy-url",
        ]),
        shape in 0..4,
        cut in any::<prop::sample::Index>(),
        broken in any::<bool>(),
    ) {
        let value = match shape {
            0 => json!(secret),
            1 => json!([secret]),
            2 => json!({ "key": secret }),
            _ => json!(format!("{secret}\n")),
        };
        let mut text = with(field, value).to_string();
        if broken {
            text.truncate(cut.index(text.len()));
        }
        let printed = match Kubeconfig::read(text.as_bytes()) {
            Ok(config) => format!("{config:?}"),
            Err(refused) => format!("{refused:?} {refused} {}", refused.message()),
        };
        prop_assert!(!printed.contains(&secret), "{printed}");
        prop_assert!(!printed.contains("hush-hush"), "{printed}");
    }
}
