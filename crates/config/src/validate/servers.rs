//! Validation of the blocks about TLS, certificates and the visibility server.

use std::net::IpAddr;

use crds::validation::{
    Errors, FieldError,
    labels::{service_name_problems, subdomain_problems},
};

use super::Problems;
use crate::{CertManagement, Configuration, Tls, VisibilityServer};

/// Adds the problems of all servers.
pub(super) fn check(config: &Configuration, problems: &mut Problems) {
    if let Some(tls) = &config.tls {
        check_tls(tls, problems);
    }
    problems.extend(check_names(&config.internal_cert_management));
    problems.extend(check_visibility(&config.visibility_server));
}

fn check_tls(tls: &Tls, problems: &mut Problems) {
    let version = tls.min_version.as_deref();
    let known = matches!(version, None | Some("" | "VersionTLS12" | "VersionTLS13"));
    if !known {
        let detail = "minVersion must be VersionTLS12 or VersionTLS13";
        problems.extend([FieldError::invalid_together("tls", detail)]);
    }
    // TLS 1.3 has suites of its own, which Go does not let a program choose.
    let mixed = version == Some("VersionTLS13") && !tls.cipher_suites.is_empty();
    problems.unless(!mixed, "tls.cipherSuites", "must be empty when minVersion is VersionTLS13");
}

/// The names are used only if the manager creates the certificates.
fn check_names(certs: &CertManagement) -> Errors {
    if !certs.enable {
        return vec![];
    }
    let (secret, service) = (&certs.webhook_secret_name, &certs.webhook_service_name);
    let fields = [
        ("webhookSecretName", secret, subdomain_problems(secret)),
        ("webhookServiceName", service, service_name_problems(service)),
    ];
    let errors = fields.into_iter().flat_map(|(field, name, problems)| {
        let path = format!("internalCertManagement.{field}");
        problems.into_iter().map(move |problem| FieldError::invalid(&path, name, problem))
    });
    errors.collect()
}

fn check_visibility(server: &VisibilityServer) -> Errors {
    let (address, port) = (&server.bind_address, server.bind_port);
    let mut errors = Errors::new();
    if !address.is_empty() && address.parse::<IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(FieldError::invalid("visibilityServer.bindAddress", address, detail));
    }
    if port == 0 {
        let detail = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid("visibilityServer.bindPort", port, detail));
    }
    errors
}
