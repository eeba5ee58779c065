//! When the client certificates of the kubeconfigs expire, and the condition that says so in time.
//!
//! The condition exists from [`NOTICE`] before the expiry until another kubeconfig is loaded. A kubeconfig with a token has
//! none.

use std::time::Duration;

use crds::{
    meta::Condition,
    names::{
        conditions::CERTIFICATE_EXPIRING,
        reasons::{CERTIFICATE_EXPIRED, CERTIFICATE_EXPIRING as EXPIRING},
    },
};
use index::status::StatusStamp;
use jiff::Timestamp;

use crate::control::{
    key_map::KeyMap,
    timers::{Agenda, Reevaluation},
};

/// How long before its end a certificate is reported.
const NOTICE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The expiry of the certificate in each loaded kubeconfig, by worker; `None` for one without a certificate.
#[derive(Debug, Default)]
pub(super) struct CertificateExpiries(KeyMap<Box<str>, Option<Timestamp>>);

impl CertificateExpiries {
    /// Records the certificate of a kubeconfig that was loaded.
    pub(super) fn observe(
        &mut self,
        name: &str,
        expires: Option<Timestamp>,
        (now, agenda): (Timestamp, &mut Agenda),
    ) {
        self.0.insert(name.into(), expires);
        agenda.now(Reevaluation::Clusters);
        let times = expires.into_iter().flat_map(|expires| [notice_at(expires), expires]);
        for time in times.filter(|time| *time > now) {
            agenda.at(time, Reevaluation::Clusters);
        }
    }

    /// Sets or removes the condition of a worker. It stays as it is until a kubeconfig was loaded, as after a restart.
    pub(super) fn set_condition(
        &self,
        name: &str,
        conditions: &mut Vec<Condition>,
        at: StatusStamp,
    ) {
        let Some(expires) = self.0.get(name) else {
            return;
        };
        let Some(expires) = expires.filter(|expires| notice_at(*expires) <= at.now) else {
            conditions.retain(|one| one.r#type != CERTIFICATE_EXPIRING);
            return;
        };
        let (reason, verb) = match expires <= at.now {
            true => (CERTIFICATE_EXPIRED, "expired"),
            false => (EXPIRING, "expires"),
        };
        let message = format!("the client certificate of the kubeconfig {verb} at {expires}");
        index::status::set(conditions, CERTIFICATE_EXPIRING, true, reason, &message, at);
    }
}

fn notice_at(expires: Timestamp) -> Timestamp {
    expires.checked_sub(NOTICE).unwrap_or(Timestamp::MIN)
}
