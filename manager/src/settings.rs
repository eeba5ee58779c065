//! The settings of the process: configuration file and feature gates, or their defaults.

use std::{path::Path, time::Duration};

use anyhow::Context;
use cluster::control::QUEUE_STATUS_PERIOD;
use config::{
    Configuration, JobKinds,
    declared_kinds::declared_kinds,
    gates::{Gate, Gates},
    support::IneffectiveSetting,
};
use jobs::Kinds;
use kube::Client;
use ray::security::SecurityConfig;
use remote::KubeconfigDirectory;
use runtime::tls::{MinVersion, ServerTls};
use webhooks::{JobSettings, JobWebhooks, WebhookGates, cache::SharedWebhookCache};

use crate::{
    args::{ManagerArgs, NAME_PREFIX},
    certificates::CertificateSource,
};

const SERVICE_ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Settings of the process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessSettings {
    /// The configuration file.
    pub(crate) file: Configuration,
    /// The feature gates.
    pub(crate) gates: Gates,
    /// The kinds of jobs that are handled.
    pub(crate) kinds: JobKinds,
    /// The kubeconfigs in files. One for the process: clones share its limits.
    pub(crate) kubeconfig_files: KubeconfigDirectory,
    /// How the names of the manager's own objects begin.
    pub(crate) name_prefix: String,
    /// Settings that are used and have no effect.
    pub(crate) ineffective: Vec<IneffectiveSetting>,
    /// How RayClusters are secured; none unless an administrator asks for it.
    pub(crate) ray_security: Option<SecurityConfig>,
    /// The least time between two writes of the status of one queue.
    pub(crate) queue_status_period: Duration,
}

impl ProcessSettings {
    /// Reads the configuration, and warns about settings that are used without effect.
    ///
    /// # Errors
    /// If the file cannot be read, or is invalid.
    pub(crate) fn load(args: &ManagerArgs) -> anyhow::Result<Self> {
        let declared = declared_kinds(args.job_kinds.as_deref())?;
        let settings = Self::read(args.config.as_deref(), &args.feature_gates, &declared)?;
        let ineffective: Vec<IneffectiveSetting> =
            args.ineffective_flags().into_iter().chain(settings.ineffective_settings()).collect();
        for IneffectiveSetting { name, reason } in &ineffective {
            tracing::warn!(setting = name, reason, "a setting that is used has no effect");
        }
        let kubeconfig_files = KubeconfigDirectory::new(args.worker_kubeconfig_directory.clone());
        let ray_security = ray_security(args.ray_security.as_deref())?;
        let name_prefix = args.name_prefix.clone();
        let queue_status_period = args.queue_status_period;
        Ok(Self {
            kubeconfig_files,
            name_prefix,
            ineffective,
            ray_security,
            queue_status_period,
            ..settings
        })
    }

    fn read(path: Option<&Path>, feature_gates: &str, declared: &Kinds) -> anyhow::Result<Self> {
        let namespace = own_namespace();
        let file = match path {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the configuration {}", path.display()))?;
                Configuration::load(&text, namespace.as_deref())
                    .with_context(|| format!("configuration {}", path.display()))?
            }
            None => Configuration::without_file(namespace.as_deref())?,
        };
        // Both sources are passed, because it is an error if both are set.
        let gates = file.gates(feature_gates).context("feature gates")?;
        file.check_with(&gates)?;
        let kinds = JobKinds::configured(&file, &gates, declared);
        Ok(Self {
            file,
            gates,
            kinds,
            kubeconfig_files: KubeconfigDirectory::default(),
            name_prefix: NAME_PREFIX.to_owned(),
            ineffective: Vec::new(),
            ray_security: None,
            queue_status_period: QUEUE_STATUS_PERIOD,
        })
    }

    /// The settings of a configuration file, and the defaults of all flags.
    #[cfg(test)]
    pub(crate) fn of(file: Configuration) -> Self {
        Self {
            file,
            gates: Gates::default(),
            kinds: JobKinds::all(&Kinds::default()),
            kubeconfig_files: KubeconfigDirectory::default(),
            name_prefix: NAME_PREFIX.to_owned(),
            ineffective: Vec::new(),
            ray_security: None,
            queue_status_period: QUEUE_STATUS_PERIOD,
        }
    }

    /// What the file and the gates set without an effect.
    fn ineffective_settings(&self) -> impl Iterator<Item = IneffectiveSetting> {
        self.file.settings_without_effect().into_iter().chain(self.gates.without_effect())
    }

    /// The settings of webhooks.
    pub(crate) fn webhook_gates(&self) -> WebhookGates {
        WebhookGates::from(&self.gates)
    }

    /// The webhooks of jobs. They read `cache`.
    pub(crate) fn job_webhooks(&self, client: &Client, cache: &SharedWebhookCache) -> JobWebhooks {
        let settings = JobSettings::new(&self.file, &self.gates, &self.kinds);
        JobWebhooks::new(settings, cache.clone(), client.clone())
    }

    /// What servers offer; the defaults without the gate TLSOptions.
    pub(crate) fn tls(&self) -> ServerTls {
        let block = self.file.tls.as_ref().filter(|_| self.gates.enabled(Gate::TLSOptions));
        let Some(block) = block else {
            return ServerTls::default();
        };
        ServerTls {
            min: match block.min_version.as_deref() {
                Some("VersionTLS13") => MinVersion::Tls13,
                // Go's default, as in Kueue; the configuration was validated when it was read.
                _ => MinVersion::Tls12,
            },
            cipher_suites: block.cipher_suites.clone(),
            curves: block.curve_preferences.clone(),
        }
    }

    /// The source of the webhooks' certificate.
    pub(crate) fn certificates(&self) -> CertificateSource {
        let certs = &self.file.internal_cert_management;
        if certs.enable {
            CertificateSource::Managed {
                service: certs.webhook_service_name.clone(),
                secret: certs.webhook_secret_name.clone(),
            }
        } else {
            CertificateSource::Directory(self.file.webhook.cert_dir.clone().into())
        }
    }
}

/// Reads how RayClusters are secured; none without a file. A manager cannot ask its workers for their domain.
fn ray_security(path: Option<&Path>) -> anyhow::Result<Option<SecurityConfig>> {
    let Some(path) = path else { return Ok(None) };
    let read = || {
        let config = SecurityConfig::parse(&std::fs::read_to_string(path)?)?;
        anyhow::Ok(config.complete()?)
    };
    read().with_context(|| format!("--ray-security {}", path.display())).map(Some)
}

/// The namespace of the pod; none outside a pod.
fn own_namespace() -> Option<String> {
    let text = std::fs::read_to_string(SERVICE_ACCOUNT_NAMESPACE).ok()?;
    // An empty file is no namespace; the default applies then.
    Some(text.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";

    fn read(text: &str, feature_gates: &str) -> anyhow::Result<ProcessSettings> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), format!("{HEADER}{text}"))?;
        ProcessSettings::read(Some(file.path()), feature_gates, &Kinds::default())
    }

    #[test]
    fn gates_of_the_file_or_the_flag_reach_the_webhooks() {
        for settings in [
            read("featureGates: {PartialAdmission: false}", ""),
            read("", "PartialAdmission=false"),
            ProcessSettings::read(None, "PartialAdmission=false", &Kinds::default()),
        ] {
            let gates = settings.expect("settings").webhook_gates();
            assert_eq!(gates, WebhookGates { partial_admission: false, ..WebhookGates::default() });
        }
    }

    #[test]
    fn the_gate_of_tls_options_decides_whether_they_count() {
        let text = "tls: {minVersion: VersionTLS13, curvePreferences: [29]}\n";
        let tls = read(text, "").expect("settings").tls();
        assert_eq!((tls.min, &*tls.curves), (MinVersion::Tls13, &[29][..]));
        let without = read(text, "TLSOptions=false").expect("settings").tls();
        assert_eq!(without, ServerTls::default());
    }

    #[test]
    fn certificates_are_managed_unless_they_are_mounted() {
        let own = read("", "").expect("settings").certificates();
        let service = "kueue-webhook-service".to_owned();
        let secret = "kueue-webhook-server-cert".to_owned();
        assert_eq!(own, CertificateSource::Managed { service, secret });
        let text = "internalCertManagement: {enable: false}\nwebhook: {certDir: /certs}\n";
        let mounted = read(text, "").expect("settings").certificates();
        assert_eq!(mounted, CertificateSource::Directory("/certs".into()));
    }

    #[test]
    fn an_invalid_configuration_is_reported_with_its_position() {
        for (text, gates, part) in [
            ("webhook:\n  prot: 1\n", "", "line 4"),
            ("featureGates:\n  Kitchen: true\n", "", "line 4"),
            ("featureGates: {PartialAdmission: true}\n", "PartialAdmission=false", "both"),
            ("", "Kitchen=true", "\"Kitchen\""),
        ] {
            let error = format!("{:#}", read(text, gates).expect_err("refused"));
            assert!(error.contains(part), "{error}");
        }
        let nowhere = Some(Path::new("/nowhere.yaml"));
        let missing = ProcessSettings::read(nowhere, "", &Kinds::default());
        let error = format!("{:#}", missing.expect_err("no file"));
        assert!(error.starts_with("cannot read the configuration /nowhere.yaml"), "{error}");
    }
}
