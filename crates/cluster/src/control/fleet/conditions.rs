//! Conditions `Active` of MultiKueueClusters and of MultiKueue AdmissionChecks.

use std::sync::Arc;

use crds::{
    meta::{Condition, is_true},
    names::{
        MULTI_KUEUE_CONTROLLER,
        annotations::{CLEANUP, CLUSTER_UID},
        conditions::ACTIVE,
    },
    v1beta2::{
        AdmissionCheck, AdmissionCheckStatus, MultiKueueCluster, MultiKueueClusterStatus,
        MultiKueueConfig,
    },
};
use dispatch::{CheckStatus, ClusterAvailability, bad_config, check_status};
use index::status::StatusStamp;
use provisioning::active::parameters_name;
use runtime::{watch::Key, write::Write};
use serde_json::json;

use super::{credentials::CredentialExpiries, drains::WorkerDrains};
use crate::control::{
    context::Context,
    key_map::KeyMap,
    outbox::{Intent, Purpose, Subject, Target, Tracked},
    timers::Reevaluation,
};

/// Status, reason and message of a condition `Active`.
pub(crate) struct ActiveCondition {
    pub(crate) status: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

type Clusters = KeyMap<Box<str>, Tracked<MultiKueueCluster>>;

/// Writes the conditions of a MultiKueueCluster, if they differ.
pub(super) fn write_cluster(
    name: &str,
    tracked: &Tracked<MultiKueueCluster>,
    (active, (credentials, drains)): (&ActiveCondition, (&CredentialExpiries, &WorkerDrains)),
    ctx: &mut Context,
) {
    let subject = (Subject::MultiKueueCluster, Purpose::ClusterCondition);
    let Some(intent) = intent(name, tracked, subject, ctx) else {
        return;
    };
    let object = tracked.object();
    let (before, generation) = (&object.status, object.metadata.generation);
    let mut conditions = with_active(&before.conditions, active, generation, ctx);
    credentials.set_condition(name, &mut conditions, stamp(generation, ctx));
    drains.set_condition(name, &mut conditions, stamp(generation, ctx));
    let after = MultiKueueClusterStatus { conditions };
    ctx.outbox.submit_status::<MultiKueueCluster, _>(intent, before, &after);
}

/// Removes the confirmation of a cleanup from a MultiKueueCluster.
pub(super) fn remove_confirmation(
    name: &str,
    tracked: &Tracked<MultiKueueCluster>,
    ctx: &mut Context,
) {
    let subject = (Subject::MultiKueueCluster, Purpose::ClusterCondition);
    let Some(intent) = intent(name, tracked, subject, ctx) else {
        return;
    };
    // The version keeps a confirmation that a user has just given.
    let fields = json!({ "metadata": {
        "annotations": { CLEANUP: null },
        "resourceVersion": tracked.object().metadata.resource_version,
    } });
    ctx.outbox.submit(intent, |purpose, key| {
        Write::merge::<MultiKueueCluster>(purpose, key, None, &fields)
    });
}

/// Notes the uid of the cluster that a MultiKueueCluster leads to.
pub(super) fn note_identity(
    name: &str,
    uid: &str,
    tracked: &Tracked<MultiKueueCluster>,
    ctx: &mut Context,
) {
    let subject = (Subject::MultiKueueCluster, Purpose::ClusterUid);
    let Some(intent) = intent(name, tracked, subject, ctx) else {
        return;
    };
    // The version keeps an annotation by which a user has just confirmed a change of the cluster
    // (docs/reference/dispatch.md §9).
    let fields = json!({ "metadata": {
        "annotations": { CLUSTER_UID: uid },
        "resourceVersion": tracked.object().metadata.resource_version,
    } });
    ctx.outbox.submit(intent, |purpose, key| {
        Write::merge::<MultiKueueCluster>(purpose, key, None, &fields)
    });
}

/// Writes the condition of an AdmissionCheck, if MultiKueue is its controller and it differs.
pub(super) fn write_check(
    name: &str,
    tracked: &Tracked<AdmissionCheck>,
    (configs, clusters): (&KeyMap<Box<str>, Arc<MultiKueueConfig>>, &Clusters),
    ctx: &mut Context,
) {
    let object = tracked.object();
    if object.spec.controller_name != MULTI_KUEUE_CONTROLLER {
        return;
    }
    let subject = (Subject::AdmissionCheck, Purpose::CheckCondition);
    let Some(intent) = intent(name, tracked, subject, ctx) else {
        return;
    };
    let CheckStatus { status, reason, message } = status_of(object, configs, clusters);
    let active = ActiveCondition { status, reason, message };
    let (before, generation) = (&object.status, object.metadata.generation);
    let conditions = with_active(&before.conditions, &active, generation, ctx);
    let after = AdmissionCheckStatus { conditions };
    ctx.outbox.submit_status::<AdmissionCheck, _>(intent, before, &after);
}

/// The intent of a write; `None` if the object may not be written now.
pub(super) fn intent<K: kube::Resource>(
    name: &str,
    tracked: &Tracked<K>,
    (subject, purpose): (Subject, Purpose),
    ctx: &mut Context,
) -> Option<Intent> {
    let waiter = match subject {
        Subject::MultiKueueCluster => Reevaluation::Cluster(name.into()),
        _ => Reevaluation::Clusters,
    };
    let target = Target::home(subject, &Key { namespace: None, name: name.into() });
    let base = tracked.stamp();
    ctx.free_or_wait(&target, &base, &waiter).then_some(Intent { target, purpose, base, waiter })
}

fn status_of(
    check: &AdmissionCheck,
    configs: &KeyMap<Box<str>, Arc<MultiKueueConfig>>,
    clusters: &Clusters,
) -> CheckStatus {
    let name = match parameters_name(check.spec.parameters.as_ref(), "MultiKueueConfig") {
        Ok(name) => name,
        Err(error) => return bad_config(&error),
    };
    let Some(config) = configs.get(name) else {
        return bad_config(&format!("MultiKueueConfig.kueue.x-k8s.io \"{name}\" not found"));
    };
    let names = config.spec.clusters.iter();
    check_status(names.map(|name| (name.as_str(), presence(name, clusters))))
}

fn presence(name: &str, clusters: &Clusters) -> ClusterAvailability {
    match clusters.get(name) {
        None => ClusterAvailability::Missing,
        // The condition counts as it is written, not the connection: the check follows its changes
        // (docs/reference/multikueue.md §1.4).
        Some(tracked) if is_true(&tracked.object().status.conditions, ACTIVE) => {
            ClusterAvailability::Active
        }
        Some(_) => ClusterAvailability::Inactive,
    }
}

fn stamp(generation: Option<i64>, ctx: &Context) -> StatusStamp {
    StatusStamp { now: ctx.now, generation: generation.unwrap_or_default() }
}

fn with_active(
    before: &[Condition],
    active: &ActiveCondition,
    generation: Option<i64>,
    ctx: &Context,
) -> Vec<Condition> {
    let mut conditions = before.to_vec();
    let at = stamp(generation, ctx);
    let ActiveCondition { status, reason, message } = active;
    index::status::set_for_generation(
        &mut conditions,
        index::status::NewCondition { kind: ACTIVE, status: *status, reason, message },
        at,
    );
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_check_are_a_config_of_kueue() {
        let configs = KeyMap::from_iter([("c".into(), Arc::new(MultiKueueConfig::default()))]);
        let message = |group: &str, kind: &str| {
            let check = json!({
                "metadata": {"name": "check"},
                "spec": {"parameters": {"apiGroup": group, "kind": kind, "name": "c"}},
            });
            let check = serde_json::from_value(check).expect("a check");
            status_of(&check, &configs, &Clusters::default()).message
        };
        let group = "wrong group \"bad.group\", expecting \"kueue.x-k8s.io\"";
        let kind = "wrong kind \"BadKind\", expecting \"MultiKueueConfig\"";
        for (known, error) in [
            (message("bad.group", "MultiKueueConfig"), group),
            (message("kueue.x-k8s.io", "BadKind"), kind),
        ] {
            let wanted = format!(
                "Cannot load the AdmissionChecks parameters: {error}: bad parameters reference"
            );
            assert_eq!(known, wanted);
        }
        assert_eq!(message("kueue.x-k8s.io", "MultiKueueConfig"), "", "it lists no cluster");
    }
}
