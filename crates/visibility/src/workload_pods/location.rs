//! The cluster that runs a Workload, and whether what is there is its copy.

use crds::{
    meta::{annotation, find, label},
    names::{annotations::WORKLOAD_UID, conditions::QUOTA_RESERVED, labels::MULTI_KUEUE_ORIGIN},
    v1beta2::Workload,
};
use jobs::remote_objects;

use super::{PodsRefusal, observed::name_of};

/// Where the pods of a Workload are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadLocation {
    /// On the manager cluster.
    Home,
    /// On this worker.
    Worker(String),
}

/// Where the pods of a Workload are.
///
/// # Errors
/// If no cluster runs it yet; with what it waits for.
pub fn location_of(workload: &Workload) -> Result<WorkloadLocation, PodsRefusal> {
    let status = &workload.status;
    if let Some(name) = status.cluster_name.as_ref().filter(|name| !name.is_empty()) {
        return Ok(WorkloadLocation::Worker(name.clone()));
    }
    let waits = |why: String| {
        Err(PodsRefusal::NotPlaced { workload: name_of(&workload.metadata).to_owned(), why })
    };
    if !status.nominated_cluster_names.is_empty() {
        let names = status.nominated_cluster_names.join(", ");
        return waits(format!("it is nominated for {names}, and none has admitted it"));
    }
    if workload.is_admitted() || workload.is_finished() {
        return Ok(WorkloadLocation::Home);
    }
    if workload.has_quota_reservation() {
        let checks: Vec<&str> = status.admission_checks.iter().map(|one| &*one.name).collect();
        return waits(format!("it waits for its admission checks {}", checks.join(", ")));
    }
    if !workload.is_active() {
        return waits("it is deactivated".to_owned());
    }
    let message = find(&status.conditions, QUOTA_RESERVED).map(|one| &*one.message);
    waits(match message.filter(|message| !message.is_empty()) {
        Some(message) => format!("it is pending: {message}"),
        None => "it is pending".to_owned(),
    })
}

/// Checks that a worker's Workload is the copy of this one, of its present epoch.
///
/// # Errors
/// If it is not there, or another one.
pub fn check_copy(
    workload: &Workload,
    copy: Option<&Workload>,
    cluster: &str,
    origin: &str,
) -> Result<(), PodsRefusal> {
    let (workload_name, cluster) = (name_of(&workload.metadata).to_owned(), cluster.to_owned());
    let Some(copy) = copy else {
        let finished = workload.is_finished();
        return Err(PodsRefusal::NoCopy { workload: workload_name, cluster, finished });
    };
    let of_origin = label(&copy.metadata, MULTI_KUEUE_ORIGIN) == Some(origin);
    // Copies that Kueue has made have no uid.
    let uid = annotation(&copy.metadata, WORKLOAD_UID);
    let of_uid = uid.is_none() || uid == workload.metadata.uid.as_deref();
    let of_epoch = remote_objects::epoch(&copy.metadata) == index::epoch(workload);
    if of_origin && of_uid && of_epoch {
        Ok(())
    } else {
        Err(PodsRefusal::OtherCopy { workload: workload_name, cluster })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn workload(status: &Value) -> Workload {
        let workload = json!({
            "metadata": {"name": "w", "uid": "u", "annotations": {"sluice.dev/epoch": "2"}},
            "spec": {}, "status": status,
        });
        serde_json::from_value(workload).expect("a Workload")
    }

    fn condition(r#type: &str, status: &str, message: &str) -> Value {
        json!({"type": r#type, "status": status, "reason": "R", "message": message,
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn a_workload_without_a_cluster_says_what_it_waits_for() {
        let refused = |status: &Value| {
            let refusal = location_of(&workload(status)).expect_err("no place");
            assert_eq!(refusal.code(), 409);
            refusal.to_string()
        };
        let says = |why: &str| format!("Workload \"w\" has no pods yet: {why}");
        assert_eq!(refused(&json!({})), says("it is pending"));
        let pending = condition("QuotaReserved", "False", "couldn't assign flavors");
        let expected = says("it is pending: couldn't assign flavors");
        assert_eq!(refused(&json!({"conditions": [pending]})), expected);
        assert_eq!(
            refused(&json!({"nominatedClusterNames": ["east", "west"]})),
            says("it is nominated for east, west, and none has admitted it")
        );
        let check = json!({"name": "room", "state": "Pending", "message": "",
                           "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let reserved = condition("QuotaReserved", "True", "");
        assert_eq!(
            refused(&json!({"conditions": [reserved], "admissionChecks": [check]})),
            says("it waits for its admission checks room")
        );
        let mut deactivated = workload(&json!({}));
        deactivated.spec.active = Some(false);
        let refusal = location_of(&deactivated).expect_err("no place").to_string();
        assert_eq!(refusal, says("it is deactivated"));
    }

    #[test]
    fn pods_are_on_the_recorded_cluster_or_at_home() {
        let place = |status: &Value| location_of(&workload(status)).expect("a place");
        let worker = WorkloadLocation::Worker("east".to_owned());
        assert_eq!(place(&json!({"clusterName": "east"})), worker);
        let finished = condition("Finished", "True", "");
        assert_eq!(place(&json!({"clusterName": "east", "conditions": [finished]})), worker);
        for of_home in ["Admitted", "Finished"] {
            let conditions = json!({"conditions": [condition(of_home, "True", "")]});
            assert_eq!(place(&conditions), WorkloadLocation::Home, "{of_home}");
        }
    }

    #[test]
    fn only_the_present_copy_of_this_manager_counts() {
        let own = workload(&json!({"clusterName": "east"}));
        let checked = |origin: &str, uid: Option<&str>, epoch: &str| {
            let mut annotations = json!({"sluice.dev/epoch": epoch});
            if let Some(uid) = uid {
                annotations["sluice.dev/workload-uid"] = json!(uid);
            }
            let labels = json!({"kueue.x-k8s.io/multikueue-origin": origin});
            let copy = json!({
                "metadata": {"name": "w", "labels": labels, "annotations": annotations}, "spec": {},
            });
            let copy: Workload = serde_json::from_value(copy).expect("a Workload");
            check_copy(&own, Some(&copy), "east", "multikueue")
        };
        assert_eq!(checked("multikueue", Some("u"), "2"), Ok(()));
        assert_eq!(checked("multikueue", None, "2"), Ok(()), "a copy of Kueue");
        for (origin, uid, epoch) in [
            ("another", Some("u"), "2"),
            ("multikueue", Some("of-a-former-workload"), "2"),
            ("multikueue", Some("u"), "1"),
            ("multikueue", Some("u"), "18446744073709551615"),
        ] {
            let refusal = checked(origin, uid, epoch).expect_err("another copy");
            assert_eq!(refusal.code(), 409, "{origin} {uid:?} {epoch}");
        }
    }

    #[test]
    fn a_copy_with_an_epoch_that_no_manager_has_given_out_does_not_count() {
        for (own, copied, counts) in [
            (json!({}), json!({}), true),
            (json!({}), json!({"sluice.dev/epoch": "1"}), true),
            (json!({}), json!({"sluice.dev/epoch": "never"}), false),
            (json!({"sluice.dev/epoch": "1"}), json!({"sluice.dev/epoch": ""}), false),
        ] {
            let with = |annotations: &Value| -> Workload {
                let labels = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
                let metadata = json!({"name": "w", "labels": labels, "annotations": annotations});
                serde_json::from_value(json!({"metadata": metadata, "spec": {}}))
                    .expect("a Workload")
            };
            let checked = check_copy(&with(&own), Some(&with(&copied)), "east", "multikueue");
            assert_eq!(checked.is_ok(), counts, "{own} {copied}");
        }
    }

    #[test]
    fn a_copy_that_is_gone_was_removed_after_the_end() {
        let gone = |status: &Value| {
            let refusal = check_copy(&workload(status), None, "east", "multikueue");
            let refusal = refusal.expect_err("no copy");
            assert_eq!(refusal.code(), 404);
            refusal.to_string()
        };
        assert!(gone(&json!({})).ends_with("it is not there yet, or was withdrawn"));
        let finished = json!({"conditions": [condition("Finished", "True", "")]});
        assert!(gone(&finished).ends_with("it was removed after the Workload had finished"));
    }
}
