//! Claims of worker clusters: which MultiKueueCluster may use a cluster that several of them lead to. Pure.
//!
//! Each of two connections to one cluster would delete the objects of the other, because these carry the manager's origin but
//! are recorded under the other name. So a cluster belongs to one MultiKueueCluster. The uid of the cluster is written on it
//! before the cluster is used, so the claim survives restarts. If two MultiKueueClusters carry the same uid, for example after
//! a manual copy, the older one wins.

use crate::control::key_map::KeyMap;
use crds::{names::annotations::CLUSTER_UID, v1beta2::MultiKueueCluster};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The claims by MultiKueueCluster.
#[derive(Debug, Default)]
pub(super) struct Claims {
    of: KeyMap<Box<str>, Claim>,
}

#[derive(Debug, Default)]
struct Claim {
    since: Option<Time>,
    /// The uid of the MultiKueueCluster. A recreated one has a new uid and no annotation.
    object: Option<String>,
    /// The uid of the cluster that it leads to, as last known.
    uid: Option<Box<str>>,
}

/// The decision about a claim.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClaimDecision {
    /// The claim is valid and noted.
    Valid,
    /// The claim is valid once it is noted.
    Note,
    /// The cluster belongs to this MultiKueueCluster.
    TakenBy(Box<str>),
    /// Work is recorded on another cluster, which has this uid.
    Changed(Box<str>),
}

impl Claims {
    /// Handles a new or changed MultiKueueCluster.
    pub(super) fn update(&mut self, name: &str, cluster: &MultiKueueCluster) {
        let claim = self.of.entry(name.into()).or_default();
        claim.since.clone_from(&cluster.metadata.creation_timestamp);
        if claim.object != cluster.metadata.uid {
            claim.object.clone_from(&cluster.metadata.uid);
            claim.uid = None;
        }
        let annotations = cluster.metadata.annotations.as_ref();
        // Without the annotation the claim stays: its note may be on its way.
        if let Some(uid) = annotations.and_then(|all| all.get(CLUSTER_UID)) {
            claim.uid = Some(uid.as_str().into());
        }
    }

    /// Drops the claims of MultiKueueClusters that no longer exist and have no connection.
    pub(super) fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        self.of.retain(|name, _| exists(name));
    }

    /// Withdraws a claim that could not be noted.
    pub(super) fn withdraw(&mut self, name: &str) {
        if let Some(claim) = self.of.get_mut(name) {
            claim.uid = None;
        }
    }

    /// Claims the cluster with this uid. While work is recorded under the name, another uid than the last known one is no
    /// claim: a URL proves nothing, and a cluster without copies would make the work start elsewhere
    /// (docs/reference/dispatch.md §9).
    pub(super) fn claim(
        &mut self,
        name: &str,
        uid: &str,
        work_is_recorded: impl FnOnce() -> bool,
    ) -> ClaimDecision {
        let mine = self.of.entry(name.into()).or_default();
        if let Some(known) = mine.uid.clone().filter(|known| **known != *uid)
            && work_is_recorded()
        {
            return ClaimDecision::Changed(known);
        }
        let written = mine.uid.as_deref() == Some(uid);
        let rank = |name: &str, claim: &Claim| (claim.since.clone(), Box::<str>::from(name));
        let my_rank = rank(name, mine);
        let others = self
            .of
            .iter()
            .filter(|(other, claim)| &***other != name && claim.uid.as_deref() == Some(uid));
        // A claim that is not written yet loses to every other one; of two written claims the older
        // wins.
        let mut better = others.filter(|(other, claim)| !written || rank(other, claim) < my_rank);
        if let Some((other, _)) = better.next() {
            return ClaimDecision::TakenBy(other.clone());
        }
        if written {
            return ClaimDecision::Valid;
        }
        if let Some(mine) = self.of.get_mut(name) {
            mine.uid = Some(uid.into());
        }
        ClaimDecision::Note
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn see(claims: &mut Claims, name: &str, second: u8, uid: Option<&str>) {
        let annotations = uid.map_or(Value::Null, |uid| json!({CLUSTER_UID: uid}));
        let cluster = json!({"spec": {}, "metadata": {
            "name": name, "annotations": annotations,
            "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
        }});
        claims.update(name, &serde_json::from_value(cluster).expect("a cluster"));
    }

    #[test]
    fn a_recreated_cluster_object_has_no_claim() {
        let mut claims = Claims::default();
        let seen = |claims: &mut Claims, uid: &str| {
            let cluster = json!({"spec": {}, "metadata": {"name": "old", "uid": uid}});
            claims.update("old", &serde_json::from_value(cluster).expect("a cluster"));
        };
        seen(&mut claims, "1");
        assert_eq!(claims.claim("old", "east", || false), ClaimDecision::Note);
        seen(&mut claims, "1");
        assert_eq!(claims.claim("old", "east", || false), ClaimDecision::Valid);
        seen(&mut claims, "2");
        assert_eq!(claims.claim("old", "east", || false), ClaimDecision::Note);
    }

    #[test]
    fn a_cluster_belongs_to_the_first_claim() {
        let mut claims = Claims::default();
        see(&mut claims, "old", 1, None);
        see(&mut claims, "new", 2, None);
        assert_eq!(claims.claim("new", "east", || false), ClaimDecision::Note);
        assert_eq!(claims.claim("old", "east", || false), ClaimDecision::TakenBy("new".into()));
        assert_eq!(claims.claim("old", "west", || false), ClaimDecision::Note);
        assert_eq!(claims.claim("new", "east", || false), ClaimDecision::Valid);
        claims.retain(|name| name != "new");
        see(&mut claims, "new", 3, None);
        assert_eq!(
            claims.claim("old", "east", || false),
            ClaimDecision::Note,
            "the other claim is gone"
        );
        assert_eq!(claims.claim("new", "west", || false), ClaimDecision::Note);
    }

    #[test]
    fn another_cluster_is_not_claimed_while_work_is_recorded_on_the_known_one() {
        let mut claims = Claims::default();
        see(&mut claims, "one", 1, Some("east"));
        assert_eq!(claims.claim("one", "west", || true), ClaimDecision::Changed("east".into()));
        assert_eq!(claims.claim("one", "east", || true), ClaimDecision::Valid, "it is back");
        see(&mut claims, "one", 1, Some("west"));
        assert_eq!(claims.claim("one", "west", || true), ClaimDecision::Valid, "confirmed");
        assert_eq!(claims.claim("one", "north", || false), ClaimDecision::Note, "nothing is lost");
        see(&mut claims, "new", 2, None);
        assert_eq!(claims.claim("new", "south", || true), ClaimDecision::Note, "the first one");
    }

    #[test]
    fn a_written_claim_is_valid_while_its_cluster_is_unreachable() {
        let mut claims = Claims::default();
        see(&mut claims, "one", 2, Some("east"));
        see(&mut claims, "two", 1, None);
        assert_eq!(claims.claim("two", "east", || false), ClaimDecision::TakenBy("one".into()));
        assert_eq!(claims.claim("one", "east", || false), ClaimDecision::Valid);
    }

    #[test]
    fn the_older_of_two_written_claims_wins() {
        let mut claims = Claims::default();
        see(&mut claims, "b", 1, Some("east"));
        see(&mut claims, "a", 2, Some("east"));
        see(&mut claims, "c", 1, Some("east"));
        assert_eq!(claims.claim("a", "east", || false), ClaimDecision::TakenBy("b".into()));
        assert_eq!(
            claims.claim("c", "east", || false),
            ClaimDecision::TakenBy("b".into()),
            "the name breaks ties"
        );
        assert_eq!(claims.claim("b", "east", || false), ClaimDecision::Valid);
    }
}
