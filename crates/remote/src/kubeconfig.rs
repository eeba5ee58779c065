//! Reads a kubeconfig from a user and takes only safe fields from it (docs/reference/multikueue.md §2.9). Pure.
//!
//! An allow-list: https server, inline certificate authority, server name, token, inline client certificate and key. Fields
//! that run a program, read a file, use a proxy or disable verification are refused, in every user and cluster of the text and
//! not only in those of the current context. Unknown fields are ignored.
//!
//! Invariant: no output of this module, neither an error nor a debug format, contains a credential.

mod read;
#[cfg(test)]
mod tests;
mod token_expiry;
#[cfg(test)]
pub(super) use tests::{sample, sample_text};

use std::{fmt, net::IpAddr};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri};
use jiff::Timestamp;
use runtime::credential_expiry::CredentialExpiry;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use self::read::{KubeconfigCluster, KubeconfigFile, KubeconfigUser};
use crate::kubeconfig_refused::KubeconfigRefused;

/// A validated kubeconfig.
#[derive(Clone, Debug)]
pub(crate) struct Kubeconfig {
    /// An https URL without credentials.
    pub(crate) server: Uri,
    /// The name in the server's certificate if it is not the host.
    pub(crate) tls_server_name: Option<String>,
    /// Trusted certificate authorities (DER); those of the system if there are none.
    pub(crate) roots: Option<Vec<Vec<u8>>>,
    /// A bearer token, valid as a header value.
    pub(crate) token: Option<Sensitive>,
    /// A client certificate.
    pub(crate) identity: Option<ClientCertificate>,
    /// The namespace of the context.
    pub(crate) namespace: Option<String>,
}

/// A client certificate with its key, both PEM in base64.
#[derive(Clone, Debug)]
pub(crate) struct ClientCertificate {
    /// The certificate.
    pub(crate) certificate: Sensitive,
    /// The private key.
    pub(crate) key: Sensitive,
}

/// A text that is never printed.
#[derive(Clone)]
pub(crate) struct Sensitive(String);

impl Sensitive {
    /// The text.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Sensitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Kubeconfig {
    /// Reads and validates the text.
    ///
    /// # Errors
    /// If it is not a kubeconfig, is not safe, or is incomplete.
    pub(crate) fn read(text: &[u8]) -> Result<Self, KubeconfigRefused> {
        let file = KubeconfigFile::read(text)?;
        for (_, user) in file.users() {
            refuse_unsafe_sources(user)?;
        }
        for (name, cluster) in file.clusters() {
            refuse_unsafe_transport(name, cluster)?;
        }
        for (name, user) in file.users() {
            refuse_unsafe_identity(name, user)?;
        }
        let context = file.context()?;
        let (cluster_name, cluster) = file.cluster(&context.cluster)?;
        let (user_name, user) = file.user(&context.user)?;
        let token = token(user_name, user)?;
        let identity = identity(user_name, user)?;
        // Without credentials every request would be anonymous, and fail one by one.
        if token.is_none() && identity.is_none() {
            return Err(KubeconfigRefused::NoCredentials(user_name.into()));
        }
        Ok(Self {
            server: server(cluster_name, cluster.server.as_deref())?,
            tls_server_name: filled(cluster.tls_server_name.as_deref()).map(str::to_owned),
            roots: roots(cluster_name, cluster.certificate_authority_data.as_deref())?,
            token,
            identity,
            namespace: filled(context.namespace.as_deref()).map(str::to_owned),
        })
    }

    /// When a credential expires, the earlier one of two; `None` if none says so.
    pub(crate) fn credential_expiry(&self) -> Option<CredentialExpiry> {
        let token = self.token.as_ref().and_then(|token| token_expiry::of(token.reveal()));
        let certificate = self.certificate_expires().map(CredentialExpiry::of_certificate);
        token.into_iter().chain(certificate).min_by_key(|one| one.expires)
    }

    fn certificate_expires(&self) -> Option<Timestamp> {
        let encoded = self.identity.as_ref()?.certificate.reveal();
        let pem = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
        runtime::certs::expires_at(&pem)
    }
}

/// Refuses credentials from programs, plugins and files.
fn refuse_unsafe_sources(user: &KubeconfigUser) -> Result<(), KubeconfigRefused> {
    if user.token_file.0 {
        return Err(KubeconfigRefused::TokenFile);
    }
    if user.exec.0 {
        return Err(KubeconfigRefused::Exec);
    }
    if user.auth_provider.0 {
        return Err(KubeconfigRefused::AuthProvider);
    }
    Ok(())
}

fn refuse_unsafe_transport(
    name: &str,
    cluster: &KubeconfigCluster,
) -> Result<(), KubeconfigRefused> {
    if cluster.insecure_skip_tls_verify.0 {
        return Err(KubeconfigRefused::InsecureTls(name.into()));
    }
    if cluster.certificate_authority.0 {
        return Err(KubeconfigRefused::AuthorityFile(name.into()));
    }
    if cluster.proxy_url.0 {
        return Err(KubeconfigRefused::Proxy(name.into()));
    }
    // As upstream does, every cluster's server is checked, not only that of the current context.
    server(name, cluster.server.as_deref()).map(drop)
}

fn refuse_unsafe_identity(name: &str, user: &KubeconfigUser) -> Result<(), KubeconfigRefused> {
    if user.username.0 || user.password.0 {
        return Err(KubeconfigRefused::BasicAuth);
    }
    for (field, file) in
        [("client-certificate", &user.client_certificate), ("client-key", &user.client_key)]
    {
        if file.0 {
            return Err(KubeconfigRefused::IdentityFile { field, user: name.into() });
        }
    }
    let acts = [&user.as_name, &user.as_uid, &user.as_groups, &user.as_user_extra];
    if acts.iter().any(|field| field.0) {
        return Err(KubeconfigRefused::Impersonation(name.into()));
    }
    Ok(())
}

/// An https URL whose host is an address or a DNS name, without parts that could hide another host.
fn server(name: &str, text: Option<&str>) -> Result<Uri, KubeconfigRefused> {
    let text = filled(text).ok_or_else(|| KubeconfigRefused::NoServer(name.into()))?;
    let server: Uri = text.parse().map_err(|_| KubeconfigRefused::Untrusted)?;
    // Credentials in the URL would appear in errors and logs.
    let plain = server.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    let trusted = server.scheme_str() == Some("https")
        && plain
        && server.query().is_none()
        && server.host().is_some_and(is_host);
    if trusted { Ok(server) } else { Err(KubeconfigRefused::Untrusted) }
}

fn is_host(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).parse::<IpAddr>().is_ok()
        // The rule for names allows lower case only, but hosts are compared without case.
        || crds::validation::labels::subdomain_problems(&host.to_ascii_lowercase()).is_empty()
}

fn roots(name: &str, data: Option<&str>) -> Result<Option<Vec<Vec<u8>>>, KubeconfigRefused> {
    let malformed = || KubeconfigRefused::Malformed {
        field: "certificate-authority-data",
        name: name.into(),
        expected: "base64 of PEM certificates",
    };
    let Some(data) = filled(data) else {
        return Ok(None);
    };
    let pem = STANDARD.decode(without_breaks(data)).map_err(|_| malformed())?;
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem)
        .map(|one| one.map(|certificate| certificate.to_vec()))
        .collect();
    match roots {
        // An empty list would mean the authorities of the system, which the user did not ask for.
        Ok(roots) if !roots.is_empty() => Ok(Some(roots)),
        _ => Err(malformed()),
    }
}

fn token(name: &str, user: &KubeconfigUser) -> Result<Option<Sensitive>, KubeconfigRefused> {
    let Some(token) = filled(user.token.as_deref()) else {
        return Ok(None);
    };
    // A line break in a token would add a header to each request.
    if HeaderValue::from_str(token).is_err() {
        let expected = "fit for a header";
        return Err(KubeconfigRefused::Malformed { field: "token", name: name.into(), expected });
    }
    Ok(Some(Sensitive(token.to_owned())))
}

fn identity(
    name: &str,
    user: &KubeconfigUser,
) -> Result<Option<ClientCertificate>, KubeconfigRefused> {
    let (certificate, key) = match (
        filled(user.client_certificate_data.as_deref()),
        filled(user.client_key_data.as_deref()),
    ) {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) => return Ok(None),
        // A certificate or a key alone proves nothing.
        _ => return Err(KubeconfigRefused::NoCredentials(name.into())),
    };
    let malformed =
        |field, expected| KubeconfigRefused::Malformed { field, name: name.into(), expected };
    let certificate = pem(certificate, |pem| CertificateDer::from_pem_slice(pem).is_ok())
        .ok_or_else(|| malformed("client-certificate-data", "base64 of a PEM certificate"))?;
    let key = pem(key, |pem| PrivateKeyDer::from_pem_slice(pem).is_ok())
        .ok_or_else(|| malformed("client-key-data", "base64 of a PEM private key"))?;
    Ok(Some(ClientCertificate { certificate, key }))
}

/// The data on one line, if `fits` accepts it.
fn pem(data: &str, fits: impl Fn(&[u8]) -> bool) -> Option<Sensitive> {
    let data = without_breaks(data);
    let pem = STANDARD.decode(&data).ok()?;
    fits(&pem).then_some(Sensitive(data))
}

/// Base64 data may be folded over lines.
fn without_breaks(data: &str) -> String {
    // Block scalars of YAML keep the line breaks of wrapped base64, which the decoder refuses.
    data.split_ascii_whitespace().collect()
}

/// An empty text counts as absent.
fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
