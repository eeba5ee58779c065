//! The expiry of the credentials of clients, and its metrics by the cluster that they are for.

use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

/// How long before its end a certificate is reported, and a token at most.
const NOTICE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The part of its lifetime that is left when a token is reported. A short token is replaced by a program, shortly before its end.
const LAST_PART: u32 = 5;

/// What a client authenticates with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A client certificate.
    Certificate,
    /// A bearer token.
    Token,
}

/// When a credential expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialExpiry {
    /// What expires.
    pub credential: Credential,
    /// Its end.
    pub expires: Timestamp,
    /// From then on the expiry is reported.
    pub notice: Timestamp,
}

impl CredentialExpiry {
    /// That of a client certificate: reported seven days before.
    #[must_use]
    pub fn of_certificate(expires: Timestamp) -> Self {
        let notice = before(expires, NOTICE);
        Self { credential: Credential::Certificate, expires, notice }
    }

    /// That of a token: reported when a fifth of its lifetime is left, at most seven days before.
    #[must_use]
    pub fn of_token(issued: Option<Timestamp>, expires: Timestamp) -> Self {
        let lifetime = issued.and_then(|issued| Duration::try_from(expires - issued).ok());
        let notice = lifetime.map_or(NOTICE, |lifetime| NOTICE.min(lifetime / LAST_PART));
        Self { credential: Credential::Token, expires, notice: before(expires, notice) }
    }
}

fn before(end: Timestamp, time: Duration) -> Timestamp {
    end.checked_sub(time).unwrap_or(Timestamp::MIN)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClusterLabels {
    cluster: String,
}

type TimeByCluster = Family<ClusterLabels, Gauge>;

/// Expiry of the credentials of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CredentialMetrics {
    certificate_expiry: TimeByCluster,
    token_expiry: TimeByCluster,
    token_notice: TimeByCluster,
}

impl CredentialMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let families = [
            (
                "client_certificate_expiry_timestamp_seconds",
                "Time at which the client certificate for a cluster expires, in seconds since 1970",
                &self.certificate_expiry,
            ),
            (
                "client_token_expiry_timestamp_seconds",
                "Time at which the token for a cluster expires, in seconds since 1970",
                &self.token_expiry,
            ),
            (
                "client_token_notice_timestamp_seconds",
                "Time from which the expiry of the token for a cluster is reported, in seconds since 1970",
                &self.token_notice,
            ),
        ];
        for (name, help, family) in families {
            registry.register(name, help, family.clone());
        }
    }

    /// Sets the expiry for a cluster. A credential that it is not reached with, or that does not expire, has no series.
    pub fn set(&self, cluster: &str, expiry: Option<CredentialExpiry>) {
        let of = |credential| expiry.filter(|one| one.credential == credential);
        let (certificate, token) = (of(Credential::Certificate), of(Credential::Token));
        set(&self.certificate_expiry, cluster, certificate.map(|one| one.expires));
        set(&self.token_expiry, cluster, token.map(|one| one.expires));
        set(&self.token_notice, cluster, token.map(|one| one.notice));
    }
}

fn set(family: &TimeByCluster, cluster: &str, time: Option<Timestamp>) {
    let labels = ClusterLabels { cluster: cluster.to_owned() };
    match time {
        Some(time) => {
            family.get_or_create(&labels).set(time.as_second());
        }
        None => {
            family.remove(&labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    const EXPIRES: i64 = 1_800_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn a_token_is_reported_in_the_last_fifth_of_its_life_and_in_its_last_week_at_most() {
        let days = |days: i64| days * 24 * 60 * 60;
        for (lifetime, notice) in [
            (Some(3600), 720),
            (Some(days(30)), days(6)),
            (Some(days(365)), days(7)),
            (None, days(7)),
        ] {
            let issued = lifetime.map(|lifetime| at(EXPIRES - lifetime));
            let expiry = CredentialExpiry::of_token(issued, at(EXPIRES));
            assert_eq!(expiry.notice, at(EXPIRES - notice), "{lifetime:?}");
        }
        // The issuer's clock may be anywhere.
        let backwards = CredentialExpiry::of_token(Some(at(EXPIRES + 1)), at(EXPIRES));
        assert_eq!(backwards.notice, at(EXPIRES - days(7)));
    }

    #[test]
    fn a_cluster_has_the_series_of_the_credential_that_it_is_reached_with() {
        let (metrics, mut registry) = (CredentialMetrics::default(), Registry::default());
        metrics.register(&mut registry);
        let series = || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("metrics");
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        metrics.set("east", Some(CredentialExpiry::of_certificate(at(EXPIRES))));
        let certificate =
            "client_certificate_expiry_timestamp_seconds{cluster=\"east\"} 1800000000";
        assert_eq!(series(), [certificate]);
        metrics.set("east", Some(CredentialExpiry::of_token(Some(at(EXPIRES - 100)), at(EXPIRES))));
        let token = "client_token_expiry_timestamp_seconds{cluster=\"east\"} 1800000000";
        let notice = "client_token_notice_timestamp_seconds{cluster=\"east\"} 1799999980";
        assert_eq!(series(), [token, notice]);
        metrics.set("east", None);
        assert_eq!(series(), [""; 0]);
    }
}
