//! The certificates of one cluster (docs/reference/lab.md, "Booting" and "Aggregated APIs").
//!
//! Every cluster has its own CA, so that a credential for one worker is not valid for another. The front proxy has a separate
//! CA, because a client certificate of that CA can impersonate any user.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// Names under which the API server is reached.
const SERVER_NAMES: [&str; 8] = [
    "127.0.0.1",
    "10.210.0.1", // from real nodes and their pods
    "10.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Why the certificates could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CertsError {
    /// Making one failed.
    #[error("make certificate {name:?}: {source}")]
    Make {
        /// Its common name.
        name: String,
        /// What the library said.
        source: rcgen::Error,
    },
    /// Writing one failed.
    #[error("write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A certificate and its private key, both PEM.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS #8.
    pub key: String,
}

/// All certificates and keys of a cluster.
#[derive(Debug)]
pub struct Certs {
    /// Signs the server's and the clients' certificates.
    pub ca: Pair,
    /// What the API server shows.
    pub server: Pair,
    /// A client in the group `system:masters`.
    pub admin: Pair,
    /// Signs the front proxy's client certificate.
    pub front_proxy_ca: Pair,
    /// What the API server shows to the servers of aggregated APIs.
    pub front_proxy: Pair,
    /// The key that signs service account tokens: private, PEM.
    pub service_account_key: String,
    /// Its public half, PEM: the API server wants it apart.
    pub service_account_public_key: String,
}

impl Certs {
    /// Makes them all.
    pub fn make() -> Result<Self, CertsError> {
        let ca = Authority::make("sluice-lab")?;
        let front_proxy_ca = Authority::make("sluice-lab-front-proxy")?;
        let server = CertSubject {
            common_name: "kube-apiserver",
            organization: None,
            names: &SERVER_NAMES,
            usage: ExtendedKeyUsagePurpose::ServerAuth,
        };
        let service_accounts = key("service accounts")?;
        Ok(Self {
            server: ca.issue(&server)?,
            admin: ca.issue(&client("admin", Some("system:masters")))?,
            front_proxy: front_proxy_ca.issue(&client("front-proxy", None))?,
            ca: ca.pair,
            front_proxy_ca: front_proxy_ca.pair,
            service_account_key: service_accounts.serialize_pem(),
            service_account_public_key: service_accounts.public_key_pem(),
        })
    }

    /// Writes them as files into `directory`, which must exist.
    pub fn write(&self, directory: &Path) -> Result<(), CertsError> {
        let pairs = [
            ("ca", &self.ca),
            ("server", &self.server),
            ("admin", &self.admin),
            ("front-proxy-ca", &self.front_proxy_ca),
            ("front-proxy", &self.front_proxy),
        ];
        for (name, pair) in pairs {
            write(&directory.join(format!("{name}.crt")), &pair.certificate)?;
            write(&directory.join(format!("{name}.key")), &pair.key)?;
        }
        write(&directory.join("service-account.key"), &self.service_account_key)?;
        write(&directory.join("service-account.pub"), &self.service_account_public_key)
    }
}

struct CertSubject<'a> {
    common_name: &'a str,
    organization: Option<&'a str>,
    names: &'a [&'a str],
    usage: ExtendedKeyUsagePurpose,
}

fn client<'a>(common_name: &'a str, organization: Option<&'a str>) -> CertSubject<'a> {
    CertSubject {
        common_name,
        organization,
        names: &[],
        usage: ExtendedKeyUsagePurpose::ClientAuth,
    }
}

struct Authority {
    pair: Pair,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn make(common_name: &str) -> Result<Self, CertsError> {
        let mut params = params(common_name, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = key(common_name)?;
        let certificate = params.self_signed(&key).map_err(making(common_name))?.pem();
        let pair = Pair { certificate, key: key.serialize_pem() };
        Ok(Self { pair, issuer: Issuer::new(params, key) })
    }

    fn issue(&self, subject: &CertSubject<'_>) -> Result<Pair, CertsError> {
        let mut params = params(subject.common_name, subject.names)?;
        if let Some(organization) = subject.organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![subject.usage.clone()];
        let key = key(subject.common_name)?;
        let certificate =
            params.signed_by(&key, &self.issuer).map_err(making(subject.common_name))?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Valid for longer than any lab lives; a lab has no notion of renewal.
fn params(common_name: &str, names: &[&str]) -> Result<CertificateParams, CertsError> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).map_err(making(common_name))?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2024, 1, 1);
    params.not_after = date_time_ymd(2124, 1, 1);
    Ok(params)
}

fn key(name: &str) -> Result<KeyPair, CertsError> {
    KeyPair::generate().map_err(making(name))
}

fn making(name: &str) -> impl FnOnce(rcgen::Error) -> CertsError {
    let name = name.to_owned();
    move |source| CertsError::Make { name, source }
}

fn write(path: &Path, content: &str) -> Result<(), CertsError> {
    crate::state::write_private(path, content.as_bytes())
        .map_err(|source| CertsError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use x509_parser::pem::parse_x509_pem;

    use super::*;

    /// Subject, and whether the certificate was signed by `issuer`.
    fn inspect(pair: &Pair, issuer: &Pair) -> (String, bool) {
        let (_, issuer) = parse_x509_pem(issuer.certificate.as_bytes()).unwrap();
        let issuer = issuer.parse_x509().unwrap();
        let (_, pem) = parse_x509_pem(pair.certificate.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        let signed = certificate.issuer() == issuer.subject();
        (certificate.subject().to_string(), signed)
    }

    #[test]
    fn each_certificate_names_its_subject_and_its_issuer() {
        let certs = Certs::make().unwrap();
        assert_eq!(inspect(&certs.server, &certs.ca), ("CN=kube-apiserver".into(), true));
        assert_eq!(inspect(&certs.admin, &certs.ca), ("CN=admin, O=system:masters".into(), true));
        let front_proxy = inspect(&certs.front_proxy, &certs.front_proxy_ca);
        assert_eq!(front_proxy, ("CN=front-proxy".into(), true));
        assert!(!inspect(&certs.front_proxy, &certs.ca).1);
    }

    #[test]
    fn the_server_is_valid_for_loopback_and_for_its_service() {
        let certs = Certs::make().unwrap();
        let (_, pem) = parse_x509_pem(certs.server.certificate.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        let names =
            certificate.subject_alternative_name().unwrap().unwrap().value.general_names.len();
        assert_eq!(names, SERVER_NAMES.len());
    }
}
