//! The certificate that servers of a process share: where it comes from, which objects need its CA, and whether readiness waits for it.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};

use runtime::{
    ca_bundle::InjectionTarget, cert_secret::CertSecret, health::HealthChecks, tls::CertificateSlot,
};

use crate::{
    certificates::{self, CalledServers, CertificateSource, ManagedCertificate},
    process_parts::ProcessParts,
    settings::ProcessSettings,
    visibility,
};

/// A replica that serves neither webhooks nor the visibility API.
const NOTHING_CALLED: CalledServers =
    CalledServers { webhooks: false, visibility: false, ray_security: false };

/// How the slot of a certificate is filled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CertificatePlan {
    /// Where the certificate comes from.
    pub(crate) origin: CertificateOrigin,
    /// Whether readiness waits for the certificate.
    pub(crate) is_awaited: bool,
}

/// Where a certificate comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CertificateOrigin {
    /// It is mounted in this directory.
    Mounted(PathBuf),
    /// It is created and shared by a Secret.
    Created {
        /// The Secret.
        secret: CertSecret,
        /// The objects that get its CA.
        targets: Vec<InjectionTarget>,
    },
}

/// The certificate of the servers that the API server calls, and of metrics; `None` if no server needs it.
pub(crate) fn certificate_plan(
    settings: &ProcessSettings,
    called: CalledServers,
    serves_metrics: bool,
) -> Option<CertificatePlan> {
    let source = settings.certificates();
    // A mounted certificate of metrics alone may never be there.
    let is_awaited = match source {
        // The visibility API has a directory of its own.
        CertificateSource::Directory(_) => called.webhooks,
        CertificateSource::Managed { .. } => called != NOTHING_CALLED,
    };
    if !is_awaited && !serves_metrics {
        return None;
    }
    let origin = match source {
        CertificateSource::Directory(directory) => CertificateOrigin::Mounted(directory),
        CertificateSource::Managed { service, secret } => CertificateOrigin::Created {
            secret: CertSecret {
                namespace: settings.file.namespace().to_owned(),
                name: secret,
                names: server_names(settings, called, &service),
            },
            targets: certificates::targets(called, &settings.name_prefix),
        },
    };
    Some(CertificatePlan { origin, is_awaited })
}

/// The DNS names and addresses of the servers.
fn server_names(
    settings: &ProcessSettings,
    called: CalledServers,
    webhook_service: &str,
) -> Vec<String> {
    let (file, namespace) = (&settings.file, settings.file.namespace());
    let mut names = certificates::names(webhook_service, namespace, &file.webhook.host);
    if called.visibility {
        let service = visibility::service(&settings.name_prefix);
        let host = &file.visibility_server.bind_address;
        for name in certificates::names(&service, namespace, host) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

impl CertificatePlan {
    /// Starts to fill the slot. Returns the readiness checks of the certificate.
    pub(crate) fn start(
        self,
        slot: &Arc<CertificateSlot>,
        parts: &mut ProcessParts<'_>,
    ) -> HealthChecks {
        let stop = parts.stop();
        let trusted = match self.origin {
            CertificateOrigin::Mounted(directory) => {
                parts.tasks.spawn(certificates::follow(directory, slot.clone(), stop));
                None
            }
            CertificateOrigin::Created { secret, targets } => {
                let is_injected = !targets.is_empty();
                let client = parts.client.clone();
                let own = ManagedCertificate::new(client, secret, slot.clone(), targets);
                let trusted = own.trusted();
                parts.tasks.spawn(own.keep(stop));
                is_injected.then_some(trusted)
            }
        };
        let checks = HealthChecks::default();
        if !self.is_awaited {
            return checks;
        }
        let served = slot.clone();
        let checks = checks.with("certificate", move || served.is_loaded());
        match trusted {
            // The API server refuses the certificate until it has the CA, so all calls would fail.
            Some(trusted) => checks.with("ca-injection", move || trusted.load(Ordering::Relaxed)),
            None => checks,
        }
    }
}

#[cfg(test)]
mod tests {
    use config::Configuration;

    use super::*;

    const WEBHOOKS: CalledServers = CalledServers { webhooks: true, ..NOTHING_CALLED };
    const VISIBILITY: CalledServers = CalledServers { visibility: true, ..NOTHING_CALLED };

    fn settings(is_mounted: bool) -> ProcessSettings {
        let mut file = Configuration::default();
        file.internal_cert_management.enable = !is_mounted;
        "/certs".clone_into(&mut file.webhook.cert_dir);
        ProcessSettings::of(file)
    }

    #[test]
    fn a_mounted_certificate_is_awaited_by_webhooks_only() {
        for (called, metrics, is_awaited) in [
            (WEBHOOKS, false, Some(true)),
            (VISIBILITY, true, Some(false)),
            (NOTHING_CALLED, true, Some(false)),
            (VISIBILITY, false, None),
        ] {
            let origin = CertificateOrigin::Mounted("/certs".into());
            let expected = is_awaited.map(|is_awaited| CertificatePlan { origin, is_awaited });
            assert_eq!(certificate_plan(&settings(true), called, metrics), expected, "{called:?}");
        }
    }

    #[test]
    fn a_created_certificate_names_the_servers_that_are_called() {
        let names = |called| match certificate_plan(&settings(false), called, true) {
            Some(CertificatePlan {
                origin: CertificateOrigin::Created { secret, targets },
                is_awaited,
            }) => (secret.names, !targets.is_empty(), is_awaited),
            other => panic!("{other:?} creates none"),
        };
        let (webhooks, visibility) = (
            "kueue-webhook-service.kueue-system.svc".to_owned(),
            "kueue-visibility-server.kueue-system.svc".to_owned(),
        );
        assert_eq!(names(WEBHOOKS), (vec![webhooks.clone()], true, true));
        assert_eq!(names(VISIBILITY), (vec![webhooks.clone(), visibility], true, true));
        assert_eq!(names(NOTHING_CALLED), (vec![webhooks], false, false));
        assert_eq!(certificate_plan(&settings(false), NOTHING_CALLED, false), None);
    }
}
