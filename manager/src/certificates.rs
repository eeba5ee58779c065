//! The serving certificate: created and shared through a Secret, or mounted from a directory.
//!
//! The API server has to trust the CA of a created certificate. The CA is injected into the CRDs with a conversion webhook,
//! into the webhook configurations and the APIServices, and again periodically, because applying a manifest may remove it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ::visibility::api::{VisibilityVersion, WORKLOAD_PODS_VERSION};
use crds::names::{SLUICE_VISIBILITY_GROUP, VISIBILITY_GROUP};
use jiff::Timestamp;
use kube::Client;
use runtime::{
    Stop,
    ca_bundle::{self, InjectedKind, Injection, InjectionTarget},
    cert_dir::CertDir,
    cert_secret::CertSecret,
    tls::CertificateSlot,
};

use runtime::error_chain;

/// Pause between two rounds when everything is up to date.
const ROUND_PAUSE: Duration = Duration::from_secs(10);

/// Pause after a round with a missing object or a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// CRDs with a conversion webhook (docs/reference/kueue.md §1.1).
const CONVERTED: &[&str] = &[
    "clusterqueues.kueue.x-k8s.io",
    "cohorts.kueue.x-k8s.io",
    "localqueues.kueue.x-k8s.io",
    "multikueueclusters.kueue.x-k8s.io",
    "workloads.kueue.x-k8s.io",
];

/// The source of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CertificateSource {
    /// Created by the manager.
    Managed {
        /// The Service that the API server calls.
        service: String,
        /// The Secret that replicas share.
        secret: String,
    },
    /// `tls.crt` and `tls.key` in a directory.
    Directory(PathBuf),
}

/// Where the certificate of metrics is mounted if the manager creates none (docs/reference/kueue.md §6.4).
pub(crate) const METRICS_CERT_DIR: &str = "/etc/kueue/metrics/certs";

impl CertificateSource {
    /// The directory of metrics, if they have a certificate of their own there. All else is served with the created or mounted
    /// certificate of the webhooks.
    pub(crate) fn of_metrics(&self, directory: &Path) -> Option<PathBuf> {
        let is_mounted = matches!(self, Self::Directory(_)) && directory.join("tls.crt").exists();
        is_mounted.then(|| directory.to_owned())
    }
}

/// A created certificate, and the objects that need its CA.
pub(crate) struct ManagedCertificate {
    client: Client,
    secret: CertSecret,
    targets: Vec<InjectionTarget>,
    slot: Arc<CertificateSlot>,
    trusted: Arc<AtomicBool>,
}

/// The DNS names of the webhook server: the Service, and the host if it is a name.
pub(crate) fn names(service: &str, namespace: &str, host: &str) -> Vec<String> {
    let mut names = vec![format!("{service}.{namespace}.svc")];
    // A wildcard binds every address and names none.
    if !["", "0.0.0.0", "::"].contains(&host) {
        names.push(host.to_owned());
    }
    names
}

/// What the API server calls in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CalledServers {
    /// Webhooks and conversion.
    pub(crate) webhooks: bool,
    /// The visibility API.
    pub(crate) visibility: bool,
    /// The webhooks that secure RayClusters.
    pub(crate) ray_security: bool,
}

/// All objects that contain the CA. Names of webhook configurations begin with the prefix.
pub(crate) fn targets(called: CalledServers, name_prefix: &str) -> Vec<InjectionTarget> {
    let webhooks = called.webhooks.then(|| targets_of_webhooks(name_prefix));
    let visibility = called.visibility.then(targets_of_visibility);
    let ray_security = called.ray_security.then(targets_of_ray_security);
    webhooks.into_iter().chain(visibility).chain(ray_security).flatten().collect()
}

fn targets_of_visibility() -> Vec<InjectionTarget> {
    let target = |version: &str, group: &str| InjectionTarget {
        kind: InjectedKind::ApiService,
        name: format!("{version}.{group}"),
    };
    let pending =
        VisibilityVersion::ALL.iter().map(|version| target(version.name(), VISIBILITY_GROUP));
    pending.chain([target(WORKLOAD_PODS_VERSION, SLUICE_VISIBILITY_GROUP)]).collect()
}

/// With the names of CodeFlare's configurations, so that one program replaces the other.
fn targets_of_ray_security() -> Vec<InjectionTarget> {
    let target = |(kind, name): (_, &str)| InjectionTarget { kind, name: name.to_owned() };
    [
        (
            InjectedKind::MutatingWebhookConfiguration,
            "codeflare-operator-mutating-webhook-configuration",
        ),
        (
            InjectedKind::ValidatingWebhookConfiguration,
            "codeflare-operator-validating-webhook-configuration",
        ),
    ]
    .map(target)
    .into()
}

fn targets_of_webhooks(name_prefix: &str) -> Vec<InjectionTarget> {
    let target = |kind, name: String| InjectionTarget { kind, name };
    let definition =
        |name: &&str| target(InjectedKind::CustomResourceDefinition, (*name).to_owned());
    let configurations = [
        (InjectedKind::MutatingWebhookConfiguration, "mutating"),
        (InjectedKind::ValidatingWebhookConfiguration, "validating"),
    ];
    let configurations = configurations
        .map(|(kind, verb)| target(kind, format!("{name_prefix}-{verb}-webhook-configuration")));
    CONVERTED.iter().map(definition).chain(configurations).collect()
}

impl ManagedCertificate {
    pub(crate) fn new(
        client: Client,
        secret: CertSecret,
        slot: Arc<CertificateSlot>,
        targets: Vec<InjectionTarget>,
    ) -> Self {
        Self { client, secret, targets, slot, trusted: Arc::default() }
    }

    /// Whether all objects contain the CA of the certificate in use. APIServices do not count: the visibility API is optional.
    pub(crate) fn trusted(&self) -> Arc<AtomicBool> {
        self.trusted.clone()
    }

    /// Renews the certificate and injects its CA until `stop`.
    pub(crate) async fn keep(self, stop: Stop) {
        loop {
            let pause = match self.round().await {
                Ok(true) => ROUND_PAUSE,
                Ok(false) => RETRY_PAUSE,
                Err(error) => {
                    let error = error_chain::describe(error.as_ref());
                    tracing::warn!(error, "cannot keep the serving certificate");
                    RETRY_PAUSE
                }
            };
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    /// One round over all objects; true if everything is up to date.
    async fn round(&self) -> anyhow::Result<bool> {
        let bundle = self.secret.ensure(&self.client, Timestamp::now()).await?;
        // Before the injection: from then on the API server accepts certificates of this CA only.
        self.slot.load(&bundle.serving.certificate, &bundle.serving.key)?;
        // An object that fails does not keep the CA from the others.
        let (mut settled, mut cache) = (true, true);
        for target in &self.targets {
            let is_optional = target.kind == InjectedKind::ApiService;
            let injected =
                ca_bundle::inject(&self.client, target, &bundle.authority.certificate).await;
            match injected {
                Ok(Injection::Unchanged) => {}
                Ok(Injection::Injected) => tracing::info!(object = %target.name, "injected the CA"),
                Ok(Injection::Missing) => {
                    tracing::debug!(object = %target.name, "an object of the CA does not exist");
                    settled &= is_optional;
                }
                Ok(Injection::Stale) => (settled, cache) = (false, cache && is_optional),
                Err(error) => {
                    tracing::warn!(error = error_chain::describe(&error), "cannot inject the CA");
                    // An optional object is tried again after the longer pause: nothing waits for it.
                    (settled, cache) = (settled && is_optional, cache && is_optional);
                }
            }
        }
        // A missing object does not keep the process from being ready: it may never be installed.
        if cache && !self.trusted.swap(true, Ordering::Relaxed) {
            tracing::info!("the serving certificate is in place");
        }
        Ok(settled)
    }
}

/// Loads a mounted certificate until `stop`; waits for it if it does not exist yet.
pub(crate) async fn follow(dir: PathBuf, slot: Arc<CertificateSlot>, stop: Stop) {
    let mut reported = String::new();
    loop {
        match CertDir::open(&dir, slot.clone()).await {
            Ok(source) => return source.follow(stop).await,
            Err(error) => {
                // The directory may never be mounted, so one warning has to be enough.
                let text = error_chain::describe(&error);
                if text != reported {
                    tracing::warn!(error = text, "waiting for the serving certificate");
                    reported = text;
                }
            }
        }
        // A Secret of another component may be mounted later than the process starts.
        if stop.run_until_cancelled(tokio::time::sleep(RETRY_PAUSE)).await.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_a_certificate_of_their_own_where_one_is_mounted() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let (service, secret) = ("hooks".to_owned(), "hooks-cert".to_owned());
        let managed = CertificateSource::Managed { service, secret };
        let mounted = CertificateSource::Directory("/certs".into());
        assert_eq!(mounted.of_metrics(directory.path()), None, "nothing is mounted");
        std::fs::write(directory.path().join("tls.crt"), "").expect("a file");
        assert_eq!(mounted.of_metrics(directory.path()).as_deref(), Some(directory.path()));
        assert_eq!(managed.of_metrics(directory.path()), None, "the manager creates one for all");
    }

    #[test]
    fn a_certificate_names_the_service_and_a_specific_host() {
        let service = "hooks.ns.svc";
        for (host, expected) in [
            ("", &[service][..]),
            ("0.0.0.0", &[service]),
            ("::", &[service]),
            ("127.0.0.1", &[service, "127.0.0.1"]),
            ("hooks.example.com", &[service, "hooks.example.com"]),
        ] {
            assert_eq!(names("hooks", "ns", host), expected, "{host:?}");
        }
    }

    #[test]
    fn names_of_webhook_configurations_begin_with_the_prefix() {
        let called = CalledServers { webhooks: true, visibility: false, ray_security: false };
        let targets = targets(called, "jobs");
        let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        let own = ["jobs-mutating-webhook-configuration", "jobs-validating-webhook-configuration"];
        assert_eq!(names, [CONVERTED, &own].concat());
    }

    #[test]
    fn every_crd_with_a_conversion_webhook_gets_the_ca() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/manifests");
        let mut converting: Vec<String> = std::fs::read_dir(dir)
            .expect("manifests")
            .map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("text"))
            .filter(|text| text.contains("strategy: Webhook"))
            .filter_map(|text| {
                let name = text.lines().find_map(|line| line.strip_prefix("  name: "))?;
                Some(name.to_owned())
            })
            .collect();
        converting.sort();
        assert_eq!(converting, CONVERTED);
    }
}
