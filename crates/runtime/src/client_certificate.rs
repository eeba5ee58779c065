//! Client certificates, as an aggregated API server needs them: the handshake takes any certificate whose private key the client
//! has, and a request is compared with the authorities that are trusted at that time.
//!
//! Authorities may change while the process runs, and there are two sets with different meanings (front proxies and users), so a
//! handshake cannot decide. A request without a [`verified`](ClientAuthorities::verify) certificate counts as one without any.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use rustls_pki_types::{CertificateDer, UnixTime, pem::PemObject};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Why authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientAuthorityError {
    /// The text is not PEM.
    #[error("cannot read the certificate authorities of clients as PEM: {0}")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// A certificate is none of an authority.
    #[error("cannot use a certificate authority of clients: {0}")]
    Unusable(#[from] Error),
    /// No certificate can be verified against the authorities.
    #[error("cannot verify certificates of clients: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The certificate chain that a client presented, its own certificate first. An extension of requests.
#[derive(Clone, Debug)]
pub struct PeerCertificates(Arc<[CertificateDer<'static>]>);

impl PeerCertificates {
    /// The chain of a handshake; `None` without a certificate.
    pub(crate) fn of(chain: Option<&[CertificateDer<'static>]>) -> Option<Self> {
        chain.filter(|chain| !chain.is_empty()).map(|chain| Self(chain.into()))
    }
}

/// The subject of a verified certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSubject {
    /// The common name; empty if there is none.
    pub common_name: String,
    /// All organizations.
    pub organizations: Vec<String>,
}

/// Certificate authorities of clients.
#[derive(Clone, Default)]
pub struct ClientAuthorities(Option<Arc<dyn ClientCertVerifier>>);

impl fmt::Debug for ClientAuthorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientAuthorities").field(&self.0.is_some()).finish()
    }
}

impl ClientAuthorities {
    /// The authorities of a PEM text. An empty text has none, so no certificate is valid.
    ///
    /// # Errors
    /// If the text is not PEM, or has a certificate that cannot be one of an authority.
    pub fn from_pem(text: &str) -> Result<Self, ClientAuthorityError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
            roots.add(certificate?)?;
        }
        if roots.is_empty() {
            return Ok(Self::default());
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self(Some(verifier.build()?)))
    }

    /// The subject of the client's certificate, if one of the authorities signed it and it is valid at `now`.
    #[must_use]
    pub fn verify(&self, peer: &PeerCertificates, now: Timestamp) -> Option<ClientSubject> {
        let (own, intermediates) = peer.0.split_first()?;
        let seconds = u64::try_from(now.as_second()).ok()?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.0.as_ref()?.verify_client_cert(own, intermediates, now).ok()?;
        subject(own)
    }
}

fn subject(certificate: &CertificateDer<'_>) -> Option<ClientSubject> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let mut names = subject.iter_common_name().filter_map(|name| name.as_str().ok());
    let organizations = subject.iter_organization().filter_map(|one| one.as_str().ok());
    Some(ClientSubject {
        common_name: names.next().unwrap_or_default().to_owned(),
        organizations: organizations.map(str::to_owned).collect(),
    })
}

/// Asks clients for a certificate and takes any. What is verified is that the client has the private key.
#[derive(Debug)]
pub(crate) struct AnyClientCertificate(WebPkiSupportedAlgorithms);

impl AnyClientCertificate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(ring::default_provider().signature_verification_algorithms))
    }
}

impl ClientCertVerifier for AnyClientCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Without hints a client sends the certificate that it has.
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
        KeyPair, date_time_ymd,
    };

    use super::*;

    struct TestAuthority {
        pem: String,
        issuer: Issuer<'static, KeyPair>,
    }

    fn params(common_name: &str) -> CertificateParams {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 2, 1);
        params
    }

    fn authority(name: &str) -> TestAuthority {
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        TestAuthority { pem, issuer: Issuer::new(params, key) }
    }

    impl TestAuthority {
        fn client(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> PeerCertificates {
            let mut params = params(name);
            params.distinguished_name.push(DnType::OrganizationName, "team");
            params.extended_key_usages = vec![usage];
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
            let chain = [certificate.der().clone()];
            PeerCertificates::of(Some(&chain)).expect("a chain")
        }
    }

    fn at(time: &str) -> Timestamp {
        time.parse().expect("a time")
    }

    #[test]
    fn only_certificates_of_the_authorities_have_a_subject() {
        let (trusted, other) = (authority("trusted"), authority("other"));
        let authorities = ClientAuthorities::from_pem(&trusted.pem).expect("an authority");
        let usage = ExtendedKeyUsagePurpose::ClientAuth;
        let peer = trusted.client("jane", usage.clone());
        let now = at("2026-01-15T00:00:00Z");
        let subject = ClientSubject {
            common_name: "jane".to_owned(),
            organizations: vec!["team".to_owned()],
        };
        assert_eq!(authorities.verify(&peer, now), Some(subject));
        assert_eq!(authorities.verify(&peer, at("2026-03-01T00:00:00Z")), None, "expired");
        assert_eq!(authorities.verify(&other.client("jane", usage), now), None);
        let server = trusted.client("jane", ExtendedKeyUsagePurpose::ServerAuth);
        assert_eq!(authorities.verify(&server, now), None, "it is none of a client");
        let both = format!("{}{}", other.pem, trusted.pem);
        let both = ClientAuthorities::from_pem(&both).expect("two authorities");
        assert!(both.verify(&peer, now).is_some());
    }

    #[test]
    fn without_authorities_no_certificate_is_valid() {
        let none = ClientAuthorities::from_pem("").expect("an empty text");
        let peer = authority("a").client("jane", ExtendedKeyUsagePurpose::ClientAuth);
        assert_eq!(none.verify(&peer, at("2026-01-15T00:00:00Z")), None);
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(ClientAuthorities::from_pem(broken).is_err());
        assert!(PeerCertificates::of(Some(&[])).is_none());
    }
}
