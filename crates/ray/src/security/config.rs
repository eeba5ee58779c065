//! What an administrator sets, and what is known of the cluster.
//!
//! The file has the form of CodeFlare's ConfigMap `codeflare-operator-config`, of which the block `kuberay` counts. The two images, which
//! are variables of CodeFlare's Deployment, are fields of that block here.
//!
//! Source: docs/reference/ray.md §13.

use crds::validation::labels::subdomain_problems;
use serde::Deserialize;
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

/// The file. Blocks of CodeFlare's operator without a meaning here are left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SecurityFile {
    kuberay: SecurityBlock,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SecurityBlock {
    #[serde(rename = "rayDashboardOAuthEnabled")]
    oauth: bool,
    #[serde(rename = "mTLSEnabled")]
    mtls: bool,
    #[serde(rename = "ingressDomain")]
    ingress_domain: String,
    #[serde(rename = "certGeneratorImage")]
    cert_generator_image: String,
    #[serde(rename = "oauthProxyImage")]
    oauth_proxy_image: String,
}

impl Default for SecurityBlock {
    /// As in CodeFlare both are on unless the file says otherwise.
    fn default() -> Self {
        Self {
            oauth: true,
            mtls: true,
            ingress_domain: String::new(),
            cert_generator_image: String::new(),
            oauth_proxy_image: String::new(),
        }
    }
}

impl SecurityConfig {
    /// Reads the file.
    ///
    /// # Errors
    /// If a field has another type, or an image is missing.
    pub fn parse(text: &str) -> Result<Self, SecurityConfigError> {
        // By way of JSON: a decoder of YAML is large, and each type would have one.
        let fields: Map<String, Value> = serde_saphyr::from_str(text)
            // A snippet repeats lines of the file; a log line has the position and the message.
            .map_err(|error| SecurityConfigError::Malformed(error.without_snippet().to_string()))?;
        let file: SecurityFile = serde_json::from_value(fields.into())
            .map_err(|error| SecurityConfigError::Malformed(error.to_string()))?;
        let block = file.kuberay;
        for (on, image, field, by) in [
            (block.mtls, &block.cert_generator_image, "certGeneratorImage", "mTLSEnabled"),
            (block.oauth, &block.oauth_proxy_image, "oauthProxyImage", "rayDashboardOAuthEnabled"),
        ] {
            if on && image.is_empty() {
                return Err(SecurityConfigError::NoImage { field, by });
            }
        }
        let config = Self {
            oauth: block.oauth,
            mtls: block.mtls,
            ingress_domain: block.ingress_domain,
            cert_generator_image: block.cert_generator_image,
            oauth_proxy_image: block.oauth_proxy_image,
        };
        if config.ingress_domain.is_empty() { Ok(config) } else { config.complete() }
    }

    /// The same with a domain of the cluster, unless the file names one.
    #[must_use]
    pub fn or_domain(mut self, domain: &str) -> Self {
        if self.ingress_domain.is_empty() {
            domain.clone_into(&mut self.ingress_domain);
        }
        self
    }

    /// The same, if its domain is one.
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
    fn an_unknown_field_is_refused() {
        let error = SecurityConfig::parse("kuberay: {oauth: true}").expect_err("unknown");
        assert!(error.to_string().contains("oauth"), "{error}");
    }
}
