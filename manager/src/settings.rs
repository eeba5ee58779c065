//! What the process needs to know, taken from flags and the configuration file (spec/kueue-core.md §6.4).

use anyhow::Context;
use cluster::{config::Configuration, gates::Gates, webhooks::Rules};
use runtime::tls::MinVersion;

use crate::{args::Args, certificates::Source};

const SERVICE_ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Settings of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The namespace of the process and of its Secrets.
    pub(crate) namespace: String,
    /// The host that webhooks are served on; empty for all.
    pub(crate) webhook_host: String,
    /// The port that webhooks are served on.
    pub(crate) webhook_port: u16,
    /// Where their certificate comes from.
    pub(crate) certificates: Source,
    /// The lowest version of TLS.
    pub(crate) min_tls: MinVersion,
    /// Where metrics are served.
    pub(crate) metrics_address: String,
    /// Where and how health is served.
    pub(crate) health: Health,
    /// What webhooks look at.
    pub(crate) rules: Rules,
}

/// Where and how health is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) address: String,
    pub(crate) liveness: String,
    pub(crate) readiness: String,
}

impl Settings {
    /// Reads what the flags name. Settings that nothing acts on yet are told in one warning.
    ///
    /// # Errors
    /// If the file cannot be read, or says something that cannot be done; the error names the line.
    pub(crate) fn load(args: &Args) -> anyhow::Result<Self> {
        let namespace = own_namespace();
        let flag = args.feature_gates.as_deref().unwrap_or_default();
        let Some(path) = &args.config else {
            let configuration = Configuration::without_file(namespace.as_deref())?;
            return Self::from_configuration(&configuration, &Gates::parse(flag)?);
        };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let read = || -> anyhow::Result<Self> {
            let configuration = Configuration::load(&text, namespace.as_deref())?;
            let ignored = configuration.not_acted_on();
            if !ignored.is_empty() {
                tracing::warn!(settings = ignored.join(", "), "settings that change nothing yet");
            }
            Self::from_configuration(&configuration, &configuration.gates(flag)?)
        };
        read().with_context(|| format!("configuration file {}", path.display()))
    }

    fn from_configuration(file: &Configuration, gates: &Gates) -> anyhow::Result<Self> {
        let certs = &file.internal_cert_management;
        let min_tls =
            file.tls.as_ref().and_then(|tls| tls.min_version.as_deref()).unwrap_or_default();
        Ok(Self {
            namespace: file.namespace().to_owned(),
            webhook_host: file.webhook.host.clone(),
            webhook_port: file.webhook.port,
            certificates: if certs.enable {
                Source::Own {
                    service: certs.webhook_service_name.clone(),
                    secret: certs.webhook_secret_name.clone(),
                }
            } else {
                Source::Directory(file.webhook.cert_dir.clone().into())
            },
            min_tls: match min_tls {
                "VersionTLS13" => MinVersion::Tls13,
                "" | "VersionTLS12" => MinVersion::Tls12,
                other => anyhow::bail!("tls.minVersion {other:?} is not supported"),
            },
            metrics_address: file.metrics.bind_address.clone(),
            health: Health {
                address: file.health.health_probe_bind_address.clone(),
                liveness: file.health.liveness_endpoint_name.clone(),
                readiness: file.health.readiness_endpoint_name.clone(),
            },
            rules: gates.into(),
        })
    }
}

/// The namespace that a pod finds itself in.
fn own_namespace() -> Option<String> {
    let text = std::fs::read_to_string(SERVICE_ACCOUNT_NAMESPACE).ok()?;
    let namespace = text.trim();
    (!namespace.is_empty()).then(|| namespace.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::Parser;

    use super::*;

    fn load(file: &str, flags: &[&str]) -> anyhow::Result<Settings> {
        let mut config = tempfile::NamedTempFile::new().expect("a file");
        config.write_all(file.as_bytes()).expect("written");
        let path = config.path().display().to_string();
        let args = [&["sluice-manager", "--config", &path], flags].concat();
        Settings::load(&Args::try_parse_from(args).expect("flags"))
    }

    const HEAD: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";

    #[test]
    fn gates_of_the_file_decide_which_rules_apply() {
        let settings = load(&format!("{HEAD}featureGates:\n  PartialAdmission: false\n"), &[]);
        assert!(!settings.expect("settings").rules.partial_admission);
        let settings = load(HEAD, &["--feature-gates", "PriorityBoost=true"]).expect("settings");
        assert!(settings.rules.priority_boost);
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        for (text, line) in [
            ("bogus: 1\n", "line 3"),
            (
                "featureGates:\n  Bogus: true\n",
                "line 4: featureGates: unknown feature gate \"Bogus\"",
            ),
            ("webhook:\n  port: high\n", "line 4"),
        ] {
            let error = load(&format!("{HEAD}{text}"), &[]).expect_err(text);
            let error = format!("{error:#}");
            assert!(error.starts_with("configuration file /"), "{error}");
            assert!(error.contains(line), "{error}");
        }
    }

    #[test]
    fn a_mounted_certificate_is_used_when_own_ones_are_off() {
        let text = format!(
            "{HEAD}internalCertManagement:\n  enable: false\nwebhook:\n  certDir: /certs\n"
        );
        let settings = load(&text, &[]).expect("settings");
        assert_eq!(settings.certificates, Source::Directory("/certs".into()));
    }
}
