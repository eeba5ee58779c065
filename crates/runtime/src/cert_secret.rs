//! A CA and a serving certificate that all replicas share through a Secret (docs/reference/kueue.md §6.4).
//!
//! Any replica may create or renew the Secret (`ca.crt`, `ca.key`, `tls.crt`, `tls.key`). Each write carries the
//! resourceVersion that was read; after a conflict the replica reads again. [`plan`] decides what to write, and is pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client, api::PostParams};

use crate::{
    certs::{self, CertError, CertPair},
    failpoint::{CERT_SECRET, with_failpoints},
};

/// Attempts before conflicts become an error.
const ATTEMPTS: usize = 5;

/// Why the Secret has no usable certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertSecretError {
    /// A request failed.
    #[error("cannot {operation} secret {namespace}/{name}: {source}")]
    Request {
        /// `read`, `create` or `replace`.
        operation: &'static str,
        /// The namespace of the Secret.
        namespace: String,
        /// The name of the Secret.
        name: String,
        /// What is wrong.
        source: Box<kube::Error>,
    },
    /// Other replicas kept writing.
    #[error("secret {namespace}/{name} kept changing")]
    Contended {
        /// The namespace of the Secret.
        namespace: String,
        /// The name of the Secret.
        name: String,
    },
    /// A certificate could not be created.
    #[error(transparent)]
    Make(#[from] CertError),
}

/// A CA and a serving certificate that it signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertBundle {
    /// The CA.
    pub authority: CertPair,
    /// The serving certificate.
    pub serving: CertPair,
}

/// What to do with the data of a Secret.
#[derive(Debug, PartialEq, Eq)]
pub enum SecretPlan {
    /// The data is valid.
    Keep(CertBundle),
    /// The data must be replaced.
    Write(CertBundle),
}

type SecretData = BTreeMap<String, ByteString>;

/// Keeps the valid parts of `data` and creates the rest. A valid CA signs a new serving certificate.
///
/// # Errors
/// If a certificate cannot be made for the names.
pub fn plan(
    data: &SecretData,
    subject: &str,
    names: &[String],
    now: Timestamp,
) -> Result<SecretPlan, CertError> {
    let authority = pair(data, "ca");
    let good = authority.filter(|authority| !certs::authority_needs_renewal(authority, now));
    let Some(authority) = good else {
        // Clients trust the new CA only, so the serving certificate is replaced with it.
        let authority = certs::make_authority(subject, now)?;
        let serving = certs::issue(&authority, names, now)?;
        return Ok(SecretPlan::Write(CertBundle { authority, serving }));
    };
    match pair(data, "tls") {
        Some(serving) if !certs::needs_renewal(&serving, &authority, names, now) => {
            Ok(SecretPlan::Keep(CertBundle { authority, serving }))
        }
        _ => {
            let serving = certs::issue(&authority, names, now)?;
            Ok(SecretPlan::Write(CertBundle { authority, serving }))
        }
    }
}

fn pair(data: &SecretData, stem: &str) -> Option<CertPair> {
    let text = |end: &str| String::from_utf8(data.get(&format!("{stem}.{end}"))?.0.clone()).ok();
    Some(CertPair { certificate: text("crt")?, key: text("key")? })
}

fn write(data: &mut SecretData, stem: &str, pair: &CertPair) {
    data.insert(format!("{stem}.crt"), ByteString(pair.certificate.clone().into_bytes()));
    data.insert(format!("{stem}.key"), ByteString(pair.key.clone().into_bytes()));
}

/// The Secret, and the names of its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertSecret {
    /// The namespace of the Secret.
    pub namespace: String,
    /// The name of the Secret.
    pub name: String,
    /// The DNS names and addresses of the server.
    pub names: Vec<String>,
}

impl CertSecret {
    /// Reads the Secret, and writes it if it is missing or needs renewal.
    ///
    /// # Errors
    /// If a request fails, or other replicas keep writing.
    pub async fn ensure(
        &self,
        client: &Client,
        now: Timestamp,
    ) -> Result<CertBundle, CertSecretError> {
        let api: Api<Secret> = Api::namespaced(client.clone(), &self.namespace);
        for _ in 0..ATTEMPTS {
            let found = api.get_opt(&self.name).await.map_err(|e| self.failed("read", e))?;
            let data = found.as_ref().and_then(|secret| secret.data.clone()).unwrap_or_default();
            match plan(&data, &format!("{}-ca", self.name), &self.names, now)? {
                SecretPlan::Keep(bundle) => return Ok(bundle),
                // After a conflict the certificates that the other replica has written are used.
                SecretPlan::Write(bundle) => {
                    if self.write(&api, found, &bundle).await? {
                        tracing::info!(secret = %self.name, "wrote certificates");
                        return Ok(bundle);
                    }
                }
            }
        }
        Err(CertSecretError::Contended {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        })
    }

    /// True if written, false after a conflict.
    async fn write(
        &self,
        api: &Api<Secret>,
        found: Option<Secret>,
        bundle: &CertBundle,
    ) -> Result<bool, CertSecretError> {
        let exists = found.is_some();
        // The resourceVersion makes the write conditional; labels and other keys stay.
        let mut secret = found.unwrap_or_default();
        secret.metadata.name = Some(self.name.clone());
        let data = secret.data.get_or_insert_default();
        write(data, "ca", &bundle.authority);
        write(data, "tls", &bundle.serving);
        let post = PostParams::default();
        let (operation, written) = if exists {
            ("replace", with_failpoints(CERT_SECRET, api.replace(&self.name, &post, &secret)).await)
        } else {
            ("create", with_failpoints(CERT_SECRET, api.create(&post, &secret)).await)
        };
        match written {
            Ok(_) => Ok(true),
            // Created, changed or deleted by another replica.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) && exists => {
                Ok(false)
            }
            // A 404 of a create is about the namespace, and the next attempt would meet it as well.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(self.failed(operation, error)),
        }
    }

    fn failed(&self, operation: &'static str, source: kube::Error) -> CertSecretError {
        CertSecretError::Request {
            operation,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            source: Box::new(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;

    fn now() -> Timestamp {
        "2026-03-01T12:00:00Z".parse().expect("a time")
    }

    fn names(name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    fn data(bundle: &CertBundle) -> SecretData {
        let mut data = SecretData::new();
        write(&mut data, "ca", &bundle.authority);
        write(&mut data, "tls", &bundle.serving);
        data
    }

    fn made(data: &SecretData, name: &str, now: Timestamp) -> CertBundle {
        match plan(data, "ca", &names(name), now).expect("a plan") {
            SecretPlan::Write(bundle) => bundle,
            SecretPlan::Keep(_) => panic!("kept"),
        }
    }

    #[test]
    fn a_valid_bundle_is_kept() {
        let bundle = made(&SecretData::new(), "a", now());
        let plan = plan(&data(&bundle), "ca", &names("a"), now()).expect("a plan");
        assert_eq!(plan, SecretPlan::Keep(bundle));
    }

    #[test]
    fn a_new_name_or_age_needs_a_certificate_of_the_same_ca() {
        let bundle = made(&SecretData::new(), "a", now());
        let renamed = made(&data(&bundle), "b", now());
        assert_eq!(renamed.authority, bundle.authority);
        assert_ne!(renamed.serving, bundle.serving);
        let renewed = made(&data(&bundle), "a", now() + (300 * 24).hours());
        assert_eq!(renewed.authority, bundle.authority);
    }

    #[test]
    fn without_a_valid_ca_everything_is_created() {
        let bundle = made(&SecretData::new(), "a", now());
        let aged = made(&data(&bundle), "a", now() + (3600 * 24).hours());
        assert_ne!(aged.authority, bundle.authority);
        let mut broken = data(&bundle);
        broken.insert("ca.key".into(), ByteString(b"x".to_vec()));
        assert_ne!(made(&broken, "a", now()).authority, bundle.authority);
    }
}
