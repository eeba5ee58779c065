//! What an administrator sets, and what is known of the cluster.
//!
//! The file has the form of CodeFlare's ConfigMap `codeflare-operator-config`, of which the block `kuberay` counts. The two images, which
//! are variables of CodeFlare's Deployment, are fields of that block here.
//!
//! Source: docs/reference/ray.md §14.

use crds::{validation::labels::subdomain_problems, yaml::decode_yaml};
use serde_json::{Map, Value};

/// What an administrator sets. A manager and its workers need the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityConfig {
    /// Dashboards are reached through a proxy that asks OpenShift for the user.
    pub oauth: bool,
    /// Ray's nodes encrypt what they send to each other.
    pub mtls: bool,
    /// The domain of hosts of dashboards. Empty: that of OpenShift.
    pub ingress_domain: String,
    /// The image that makes certificates of pods: a shell and openssl.
    pub cert_generator_image: String,
    /// The image of the proxy.
    pub oauth_proxy_image: String,
}

/// What is known of the cluster that runs Ray.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityFacts {
    /// Whether it serves OpenShift's kinds.
    pub platform: ClusterPlatform,
    /// Namespaces in which an official operator of Ray may run.
    pub operator_namespaces: Vec<String>,
    /// The namespace of the agent, which asks heads as the official operator does.
    pub agent_namespace: String,
}

/// Which kinds a cluster serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterPlatform {
    /// Those of Kubernetes.
    #[default]
    Kubernetes,
    /// Routes as well.
    OpenShift,
}

/// Both together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecuritySettings {
    /// What an administrator sets.
    pub config: SecurityConfig,
    /// What is known of the cluster.
    pub facts: SecurityFacts,
}

/// Why a file is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecurityConfigError {
    /// It is no YAML, or has fields of another type.
    #[error("read the security of RayClusters: {0}")]
    Malformed(String),
    /// A container has no image.
    #[error("kuberay.{field} is required by kuberay.{by}")]
    NoImage {
        /// The field with the image.
        field: &'static str,
        /// The field that needs it.
        by: &'static str,
    },
    /// Hosts of dashboards have no domain.
    #[error("kuberay.ingressDomain is required where OpenShift names none")]
    NoDomain,
    /// Hosts of dashboards would be no names.
    #[error("kuberay.ingressDomain: {domain:?}: {why}")]
    InvalidDomain {
        /// The domain.
        domain: String,
        /// What is wrong.
        why: String,
    },
}

/// The fields of the block, of which texts and switches are read. Both switches are on unless the file says otherwise, as in CodeFlare.
const OAUTH: &str = "rayDashboardOAuthEnabled";
const MTLS: &str = "mTLSEnabled";
const DOMAIN: &str = "ingressDomain";
const CERT_GENERATOR: &str = "certGeneratorImage";
const PROXY: &str = "oauthProxyImage";

impl SecurityConfig {
    /// Reads the file.
    ///
    /// # Errors
    /// If a field has another type, or an image is missing.
    pub fn parse(text: &str) -> Result<Self, SecurityConfigError> {
        // By way of JSON: a decoder of YAML is large, and each type would have one.
        let fields: Map<String, Value> =
            decode_yaml(text).map_err(SecurityConfigError::Malformed)?;
        // Blocks of CodeFlare's operator without a meaning here are left out.
        let config = Self::of_block(fields.get("kuberay").unwrap_or(&Value::Null))?;
        for (on, image, field, by) in [
            (config.mtls, &config.cert_generator_image, CERT_GENERATOR, MTLS),
            (config.oauth, &config.oauth_proxy_image, PROXY, OAUTH),
        ] {
            if on && image.is_empty() {
                return Err(SecurityConfigError::NoImage { field, by });
            }
        }
        if config.ingress_domain.is_empty() { Ok(config) } else { config.complete() }
    }

    fn of_block(block: &Value) -> Result<Self, SecurityConfigError> {
        let malformed = |why: String| SecurityConfigError::Malformed(format!("kuberay{why}"));
        let empty = Map::new();
        let block = match block {
            Value::Object(block) => block,
            Value::Null => &empty,
            _ => return Err(malformed(" is no block".to_owned())),
        };
        let known = [OAUTH, MTLS, DOMAIN, CERT_GENERATOR, PROXY];
        if let Some(field) = block.keys().find(|field| !known.contains(&field.as_str())) {
            return Err(malformed(format!(".{field} is unknown")));
        }
        let switch = |field: &str| match block.get(field) {
            None | Some(Value::Null) => Ok(true),
            Some(Value::Bool(on)) => Ok(*on),
            Some(_) => Err(malformed(format!(".{field} is neither true nor false"))),
        };
        let text = |field: &str| match block.get(field) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(malformed(format!(".{field} is no text"))),
        };
        Ok(Self {
            oauth: switch(OAUTH)?,
            mtls: switch(MTLS)?,
            ingress_domain: text(DOMAIN)?,
            cert_generator_image: text(CERT_GENERATOR)?,
            oauth_proxy_image: text(PROXY)?,
        })
    }

    /// This configuration with a domain of the cluster, unless the file names one.
    #[must_use]
    pub fn or_domain(mut self, domain: &str) -> Self {
        if self.ingress_domain.is_empty() {
            domain.clone_into(&mut self.ingress_domain);
        }
        self
    }

    /// This configuration, if its domain is one.
    ///
    /// # Errors
    /// If it has no domain, or a bad one.
    pub fn complete(self) -> Result<Self, SecurityConfigError> {
        if self.ingress_domain.is_empty() {
            return Err(SecurityConfigError::NoDomain);
        }
        match subdomain_problems(&self.ingress_domain).into_iter().next() {
            None => Ok(self),
            Some(why) => {
                Err(SecurityConfigError::InvalidDomain { domain: self.ingress_domain, why })
            }
        }
    }
}

impl SecuritySettings {
    /// Whether dashboards are behind the proxy, which only OpenShift can serve.
    pub(crate) fn has_proxy(&self) -> bool {
        self.config.oauth && self.facts.platform == ClusterPlatform::OpenShift
    }

    /// Whether dashboards have an Ingress.
    pub(crate) fn has_ingress(&self) -> bool {
        !self.config.oauth && self.facts.platform == ClusterPlatform::Kubernetes
    }

    /// Whether objects of OpenShift, and ClusterRoleBindings, are written.
    #[must_use]
    pub fn writes_openshift(&self) -> bool {
        self.has_proxy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_fields_have_the_defaults_of_codeflare() {
        let images = "certGeneratorImage: a, oauthProxyImage: b";
        let text = format!("kuberay: {{ingressDomain: example.com, {images}}}\nappwrapper: {{}}\n");
        let config = SecurityConfig::parse(&text).expect("a file");
        assert!(config.oauth && config.mtls);
        let error = SecurityConfig::parse("{}").expect_err("no image").to_string();
        assert_eq!(error, "kuberay.certGeneratorImage is required by kuberay.mTLSEnabled");
    }

    #[test]
    fn a_domain_is_checked_and_may_come_from_the_cluster() {
        let off = "rayDashboardOAuthEnabled: false, mTLSEnabled: false";
        let parse = |domain: &str| {
            SecurityConfig::parse(&format!("kuberay: {{{off}, ingressDomain: \"{domain}\"}}"))
        };
        let without = parse("").expect("a file");
        assert_eq!(without.clone().complete(), Err(SecurityConfigError::NoDomain));
        let completed = without.or_domain("apps.example.com").complete().expect("a domain");
        assert_eq!(completed.ingress_domain, "apps.example.com");
        for domain in ["$(id)", "A.b", "a b"] {
            let error = parse(domain).expect_err("no domain");
            assert!(matches!(error, SecurityConfigError::InvalidDomain { .. }), "{error}");
        }
        assert_eq!(parse("a.b").expect("a file").or_domain("c.d").ingress_domain, "a.b");
    }

    #[test]
    fn an_unknown_field_and_one_of_another_type_are_refused() {
        for (text, words) in [
            ("kuberay: {oauth: true}", "kuberay.oauth is unknown"),
            ("kuberay: {mTLSEnabled: \"off\"}", "kuberay.mTLSEnabled is neither true nor false"),
            ("kuberay: {ingressDomain: 1}", "kuberay.ingressDomain is no text"),
            ("kuberay: []", "kuberay is no block"),
            ("- a", "read the security of RayClusters"),
        ] {
            let error = SecurityConfig::parse(text).expect_err("refused").to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
