//! The serving certificate of a server, replaceable at run time.
//!
//! A [`CertificateSlot`] starts empty: handshakes fail until a certificate is loaded, and a readiness check can query it. New
//! handshakes use a replaced certificate; existing connections keep theirs.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::{
    ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::{CryptoProvider, SupportedKxGroup, ring},
    server::{ClientHello, NoClientAuth, ResolvesServerCert, danger::ClientCertVerifier},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use crate::client_certificate::AnyClientCertificate;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The text is not PEM, or contains something else.
    #[error("cannot read the {what} as PEM: {source}")]
    Pem {
        /// `certificate` or `private key`.
        what: &'static str,
        /// What is wrong.
        source: rustls_pki_types::pem::Error,
    },
    /// The text contains no certificate.
    #[error("the PEM text holds no certificate")]
    NoCertificate,
    /// The cipher suite or curve is not one of those that servers have.
    #[error("{what} {name} is not supported; supported are {}", .supported.join(", "))]
    Unsupported {
        /// `cipher suite` or `curve`.
        what: &'static str,
        /// Its name, or its number.
        name: String,
        /// All that are supported.
        supported: Vec<String>,
    },
    /// The key does not match the certificate, or its kind is not supported.
    #[error("cannot use the certificate with its private key: {0}")]
    Unusable(#[from] rustls::Error),
}

static FROM_12: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
static FROM_13: [&SupportedProtocolVersion; 1] = [&TLS13];

/// The minimum TLS version of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl MinVersion {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => &FROM_12,
            Self::Tls13 => &FROM_13,
        }
    }
}

/// What a server offers. Empty lists mean everything that it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTls {
    /// The minimum version.
    pub min: MinVersion,
    /// Cipher suites of TLS 1.2, by their IANA names. Those of TLS 1.3 are fixed, as in Go.
    pub cipher_suites: Vec<String>,
    /// Curves, by their IANA numbers, the preferred one first.
    pub curves: Vec<i32>,
}

impl ServerTls {
    /// The provider with the suites and curves that are wanted.
    fn provider(&self) -> Result<CryptoProvider, TlsError> {
        let mut provider = ring::default_provider();
        if !self.cipher_suites.is_empty() {
            provider.cipher_suites = self.suites(&provider.cipher_suites)?;
        }
        if !self.curves.is_empty() {
            provider.kx_groups = self.groups(&provider.kx_groups)?;
        }
        Ok(provider)
    }

    fn suites(&self, all: &[SupportedCipherSuite]) -> Result<Vec<SupportedCipherSuite>, TlsError> {
        let unknown = |name: &&String| all.iter().all(|suite| !is_named(*suite, name));
        if let Some(name) = self.cipher_suites.iter().find(unknown) {
            let supported = all.iter().map(|suite| iana_name(*suite)).collect();
            let (what, name) = ("cipher suite", name.clone());
            return Err(TlsError::Unsupported { what, name, supported });
        }
        let wanted = |suite: &&SupportedCipherSuite| {
            suite.tls13().is_some() || self.cipher_suites.iter().any(|name| is_named(**suite, name))
        };
        Ok(all.iter().filter(wanted).copied().collect())
    }

    fn groups(
        &self,
        all: &[&'static dyn SupportedKxGroup],
    ) -> Result<Vec<&'static dyn SupportedKxGroup>, TlsError> {
        let number = |group: &dyn SupportedKxGroup| i32::from(u16::from(group.name()));
        let find = |wanted: &i32| {
            let found = all.iter().copied().find(|group| number(*group) == *wanted);
            found.ok_or_else(|| TlsError::Unsupported {
                what: "curve",
                name: wanted.to_string(),
                supported: all.iter().map(|group| number(*group).to_string()).collect(),
            })
        };
        self.curves.iter().map(find).collect()
    }
}

/// The name of a suite in the registry of IANA, which Go uses.
fn iana_name(suite: SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.replacen("TLS13_", "TLS_", 1)
}

/// Go has a second name for suites with ChaCha20, without their hash.
fn is_named(suite: SupportedCipherSuite, name: &str) -> bool {
    let own = iana_name(suite);
    own == name || own.strip_suffix("_SHA256").is_some_and(|own| own == name)
}

/// Holds the current serving certificate.
#[derive(Debug, Default)]
pub struct CertificateSlot {
    current: ArcSwapOption<CertifiedKey>,
}

impl CertificateSlot {
    /// An empty slot.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Replaces the certificate. The previous one stays after an error.
    ///
    /// # Errors
    /// If the texts are not a certificate chain with its private key.
    pub fn load(&self, certificate_pem: &str, key_pem: &str) -> Result<(), TlsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate_pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|source| TlsError::Pem { what: "certificate", source })?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes())
            .map_err(|source| TlsError::Pem { what: "private key", source })?;
        // Checked before the slot changes: a wrong pair leaves the former certificate in use.
        let certified = CertifiedKey::from_der(chain, key, &ring::default_provider())?;
        self.current.store(Some(Arc::new(certified)));
        Ok(())
    }

    /// Whether a certificate is loaded.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.current.load().is_some()
    }
}

impl ResolvesServerCert for CertificateSlot {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}

/// A server configuration with the certificate of the slot. HTTP/2 is offered before HTTP/1.1.
///
/// # Errors
/// If the crypto provider does not support the TLS versions, or one of the options.
pub fn server_config(
    slot: Arc<CertificateSlot>,
    options: &ServerTls,
) -> Result<Arc<ServerConfig>, TlsError> {
    configure(slot, options, Arc::new(NoClientAuth))
}

/// A server configuration that asks clients for a certificate. Any is taken, or none; requests get it as [`PeerCertificates`], unverified.
///
/// [`PeerCertificates`]: crate::client_certificate::PeerCertificates
///
/// # Errors
/// As [`server_config`].
pub fn server_config_with_clients(
    slot: Arc<CertificateSlot>,
    options: &ServerTls,
) -> Result<Arc<ServerConfig>, TlsError> {
    configure(slot, options, AnyClientCertificate::new())
}

fn configure(
    slot: Arc<CertificateSlot>,
    options: &ServerTls,
    clients: Arc<dyn ClientCertVerifier>,
) -> Result<Arc<ServerConfig>, TlsError> {
    // An explicit provider does not depend on which features dependencies enable in rustls.
    let mut config = ServerConfig::builder_with_provider(Arc::new(options.provider()?))
        .with_protocol_versions(options.min.versions())?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(slot);
    // The API server multiplexes its calls of webhooks over one connection of HTTP/2.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(suites: &[&str], curves: &[i32]) -> Result<Arc<ServerConfig>, TlsError> {
        let cipher_suites = suites.iter().map(|&one| one.to_owned()).collect();
        let options = ServerTls { cipher_suites, curves: curves.to_vec(), ..ServerTls::default() };
        server_config(CertificateSlot::new(), &options)
    }

    #[test]
    fn cipher_suites_and_curves_are_those_of_the_options() {
        let wanted =
            ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"];
        let config = config(&wanted, &[24, 29]).expect("a configuration");
        let provider = config.crypto_provider();
        let of_12 = provider.cipher_suites.iter().filter(|suite| suite.tls13().is_none());
        let mut names: Vec<String> = of_12.map(|suite| iana_name(*suite)).collect();
        names.sort();
        assert_eq!(names, [wanted[0], "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"]);
        assert!(provider.cipher_suites.iter().any(|suite| suite.tls13().is_some()));
        let curves = provider.kx_groups.iter().map(|group| u16::from(group.name()));
        assert_eq!(curves.collect::<Vec<_>>(), [24, 29]);
    }

    #[test]
    fn what_servers_do_not_have_is_refused_with_what_they_have() {
        let error =
            config(&["TLS_RSA_WITH_AES_128_CBC_SHA"], &[]).expect_err("refused").to_string();
        assert!(error.starts_with("cipher suite TLS_RSA_WITH_AES_128_CBC_SHA is not"), "{error}");
        assert!(error.contains("TLS_AES_128_GCM_SHA256"), "{error}");
        let error = config(&[], &[25]).expect_err("refused").to_string();
        assert_eq!(error, "curve 25 is not supported; supported are 29, 23, 24");
    }
}
