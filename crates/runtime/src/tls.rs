//! The serving certificate of a server, replaceable at run time.
//!
//! A [`CertificateSlot`] starts empty: handshakes fail until a certificate is loaded, and a readiness check can query it. New
//! handshakes use a replaced certificate; existing connections keep theirs.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::{
    ServerConfig, SupportedProtocolVersion,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

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
/// If the crypto provider does not support the TLS versions.
pub fn server_config(
    slot: Arc<CertificateSlot>,
    min: MinVersion,
) -> Result<Arc<ServerConfig>, TlsError> {
    // An explicit provider does not depend on which features dependencies enable in rustls.
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(min.versions())?
        .with_no_client_auth()
        .with_cert_resolver(slot);
    // The API server multiplexes its calls of webhooks over one connection of HTTP/2.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
