//! When the credentials of the kubeconfigs expire, and the conditions that say so in time.
//!
//! A condition exists from the notice of the expiry until another kubeconfig is loaded. A credential that does not expire has none.

use crds::{
    meta::Condition,
    names::{conditions, reasons},
};
use index::status::StatusStamp;
use jiff::Timestamp;
use runtime::credential_expiry::{Credential, CredentialExpiry};

use crate::control::{
    key_map::KeyMap,
    timers::{Agenda, Reevaluation},
};

/// The condition about a credential.
struct ExpiryCondition {
    r#type: &'static str,
    expiring: &'static str,
    expired: &'static str,
    subject: &'static str,
}

/// The expiry of the credential in each loaded kubeconfig, by worker; `None` for one that does not expire.
#[derive(Debug, Default)]
pub(super) struct CredentialExpiries(KeyMap<Box<str>, Option<CredentialExpiry>>);

impl CredentialExpiries {
    /// Records the credential of a kubeconfig that was loaded.
    pub(super) fn observe(
        &mut self,
        name: &str,
        expiry: Option<CredentialExpiry>,
        (now, agenda): (Timestamp, &mut Agenda),
    ) {
        self.0.insert(name.into(), expiry);
        agenda.now(Reevaluation::Cluster(name.into()));
        let times = expiry.into_iter().flat_map(|expiry| [expiry.notice, expiry.expires]);
        for time in times.filter(|time| *time > now) {
            agenda.at(time, Reevaluation::Cluster(name.into()));
        }
    }

    /// Sets or removes the conditions of a worker. They stay as they are until a kubeconfig was loaded, as after a restart.
    pub(super) fn set_condition(
        &self,
        name: &str,
        conditions: &mut Vec<Condition>,
        at: StatusStamp,
    ) {
        let Some(expiry) = self.0.get(name) else {
            return;
        };
        let expiry = expiry.filter(|expiry| expiry.notice <= at.now);
        for credential in [Credential::Certificate, Credential::Token] {
            let about = condition_about(credential);
            let Some(expiry) = expiry.filter(|expiry| expiry.credential == credential) else {
                conditions.retain(|one| one.r#type != about.r#type);
                continue;
            };
            let (reason, verb) = if expiry.expires <= at.now {
                (about.expired, "expired")
            } else {
                (about.expiring, "expires")
            };
            let message =
                format!("the {} of the kubeconfig {verb} at {}", about.subject, expiry.expires);
            index::status::set_for_generation(
                conditions,
                index::status::NewCondition {
                    kind: about.r#type,
                    status: true,
                    reason,
                    message: &message,
                },
                at,
            );
        }
    }
}

fn condition_about(credential: Credential) -> ExpiryCondition {
    match credential {
        Credential::Certificate => ExpiryCondition {
            r#type: conditions::CERTIFICATE_EXPIRING,
            expiring: reasons::CERTIFICATE_EXPIRING,
            expired: reasons::CERTIFICATE_EXPIRED,
            subject: "client certificate",
        },
        Credential::Token => ExpiryCondition {
            r#type: conditions::TOKEN_EXPIRING,
            expiring: reasons::TOKEN_EXPIRING,
            expired: reasons::TOKEN_EXPIRED,
            subject: "token",
        },
    }
}
