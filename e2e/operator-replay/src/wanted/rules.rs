//! The rules by which differences on purpose are recognised.

use serde_json::Value;

use super::{component_steps, ray_steps, wrapper_steps};
use crate::verdict::Moment;

/// In the message of a RayJob with a submitter that ended long before its job.
const LATE_END: &str = "but the ray job did not reach terminal state within";

/// What the difference may be about in any case.
pub(super) struct GeneralRule {
    /// In the first column of the file.
    pub(super) name: &'static str,
    /// Whether a step is one that the rule is about.
    pub(super) concerns: fn(&Moment<'_>) -> bool,
    /// Whether a difference follows from the rule.
    pub(super) explains: fn(&str) -> bool,
}

/// All rules.
pub(super) const GENERAL_RULES: &[GeneralRule] = &[
    GeneralRule {
        name: "any:replicas-outside-their-bounds",
        concerns: |moment| moment.shows(&has_replicas_outside_bounds),
        explains: |difference| difference.contains(".status.desired"),
    },
    GeneralRule {
        name: "any:group-of-the-head",
        concerns: |moment| moment.shows(&|it| it["groupName"] == "headgroup"),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:upgrade-without-steps",
        concerns: |moment| moment.shows(&|it| it["stepSizePercent"] == 0),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:stop-without-a-job",
        concerns: |moment| moment.shows(&|it| it["submissionMode"] == "InteractiveMode"),
        explains: |difference| difference.contains("/api/jobs//stop"),
    },
    GeneralRule {
        name: "any:service-of-a-renamed-head",
        concerns: |moment| moment.shows(&has_renamed_head),
        explains: |difference| {
            difference.contains("-head-svc.spec.selector.app.kubernetes.io/name")
        },
    },
    GeneralRule {
        name: "any:long-account-of-the-head",
        concerns: |moment| moment.shows(&has_changed_account),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:metadata-of-an-old-ray",
        concerns: |moment| moment.shows(&has_refused_metadata),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:late-end-of-a-job",
        concerns: |moment| {
            moment.shows(&|it| it["message"].as_str().is_some_and(|it| it.contains(LATE_END)))
        },
        explains: |difference| difference.contains("RayJob/") && difference.contains(".status."),
    },
    GeneralRule {
        name: "any:suspending-and-suspended",
        concerns: |moment| moment.shows(&is_suspending_and_suspended),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:time-to-live-after-success",
        concerns: |moment| {
            let key = "workload.codeflare.dev.appwrapper/successTTLDuration";
            moment.shows(&|it| it["annotations"][key].is_string())
        },
        explains: |difference| {
            difference.contains("is not recorded") || difference.contains(".status.conditions")
        },
    },
    GeneralRule {
        name: "any:ports-of-a-head-service",
        concerns: ray_steps::is_without_the_service_of_its_head,
        explains: |_| true,
    },
    GeneralRule {
        name: "any:serve-service-without-a-port",
        concerns: ray_steps::is_without_pods_for_want_of_a_serve_port,
        explains: |_| true,
    },
    GeneralRule {
        name: "any:workers-that-wait-by-themselves",
        concerns: ray_steps::is_without_workers_that_wait_by_themselves,
        explains: |_| true,
    },
    GeneralRule {
        name: "any:provisioned-without-a-head",
        concerns: ray_steps::is_provisioned_without_a_head,
        explains: |difference| {
            difference.contains("RayCluster/") && difference.contains(".status.conditions")
        },
    },
    GeneralRule {
        name: "any:groups-of-one-name",
        concerns: |moment| moment.shows(&ray_steps::has_groups_of_one_name),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:suspended-while-waiting",
        concerns: ray_steps::has_suspended_while_waiting,
        explains: |_| true,
    },
    GeneralRule {
        name: "any:submitter-that-is-gone",
        concerns: ray_steps::runs_without_its_submitter,
        explains: |difference| {
            [": Job/", ": event CreatedRayJobSubmitter"].iter().any(|it| difference.contains(it))
                && difference.contains("is not recorded")
        },
    },
    GeneralRule {
        name: "any:service-without-a-serve-port",
        concerns: |moment| moment.shows(&ray_steps::is_service_without_a_serve_port),
        explains: |difference| difference.ends_with("event FailedToCreateService is not recorded"),
    },
    GeneralRule {
        name: "any:upgrade-that-goes-back",
        concerns: ray_steps::makes_a_third_cluster,
        explains: |_| true,
    },
    GeneralRule {
        name: "any:component-of-another",
        concerns: wrapper_steps::deletes_the_object_of_another,
        explains: |difference| {
            difference.ends_with(" is not recorded")
                || difference.contains(".status.componentStatus")
        },
    },
    GeneralRule {
        name: "any:deletion-after-a-pause",
        concerns: wrapper_steps::pauses_again_without_pods,
        explains: |difference| {
            let parts = [".status.conditions", ".status.componentStatus"];
            parts.iter().any(|part| difference.contains(part))
        },
    },
    GeneralRule {
        name: "any:cluster-scoped-component",
        concerns: |moment| moment.shows(&wrapper_steps::has_cluster_scoped_component),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:nested-app-wrapper",
        concerns: |moment| moment.shows(&component_steps::is_nested),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:kind-that-is-not-made",
        concerns: |moment| moment.shows(&component_steps::has_kind_that_is_not_made),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:too-few-declared-pods",
        concerns: |moment| moment.shows(&component_steps::declares_too_few_pods),
        explains: is_about_the_status_of_a_wrapper,
    },
    GeneralRule {
        name: "any:own-label-of-a-template",
        concerns: |moment| moment.shows(&component_steps::fails_for_its_own_label),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:wrapped-group-outside-its-bounds",
        concerns: |moment| moment.shows(&component_steps::has_group_outside_its_bounds),
        explains: is_about_the_status_of_a_wrapper,
    },
    GeneralRule {
        name: "any:pod-set-without-a-template",
        concerns: |moment| moment.shows(&component_steps::has_pod_set_without_a_template),
        // The failure has an event, and takes components away that were made before it.
        explains: |_| true,
    },
    GeneralRule {
        name: "any:period-after-a-reset",
        concerns: component_steps::is_kept_after_a_reset,
        explains: |difference| {
            difference.ends_with(" is not recorded")
                || [".status.conditions", ".status.componentStatus"]
                    .iter()
                    .any(|part| difference.contains(part))
        },
    },
    GeneralRule {
        name: "any:unknown-component-kind",
        concerns: |moment| moment.shows(&|it| it["kind"] == "AppWrapper"),
        explains: |difference| {
            difference.contains("no matches for kind")
                && difference.contains("this agent makes no objects of")
        },
    },
];

/// Whether a difference is one of the status of an AppWrapper.
fn is_about_the_status_of_a_wrapper(difference: &str) -> bool {
    difference.contains("AppWrapper/") && difference.contains(".status")
}

/// Whether a group has more replicas than its greatest number, or less than its least.
pub(super) fn has_replicas_outside_bounds(group: &Value) -> bool {
    let number = |field: &str| group[field].as_i64();
    let bounds = (number("minReplicas"), number("maxReplicas"));
    matches!((number("replicas"), bounds), (Some(wanted), (Some(fewest), Some(most))) if wanted > most || wanted < fewest)
}

/// Whether the label with the name of the application is another one in the pod of the head.
fn has_renamed_head(object: &Value) -> bool {
    let labels = &object["headGroupSpec"]["template"]["metadata"]["labels"];
    labels["app.kubernetes.io/name"].is_string()
}

/// Whether the official operator takes another account than the template of an autoscaled head names.
fn has_changed_account(object: &Value) -> bool {
    let account = object["headGroupSpec"]["template"]["spec"]["serviceAccountName"].as_str();
    let is_changed = |account: &str| {
        account.len() > 50 || account.starts_with(|first: char| first.is_ascii_digit())
    };
    object["enableInTreeAutoscaling"] == true && account.is_some_and(is_changed)
}

/// Whether the official operator refuses to submit the metadata of a job: the version of Ray is below 2.6, or no plain semantic version.
fn has_refused_metadata(object: &Value) -> bool {
    let version = object["rayClusterSpec"]["rayVersion"].as_str().unwrap_or_default();
    let numbers: Vec<Option<u64>> =
        version.trim_start_matches('v').split('.').map(|number| number.parse().ok()).collect();
    let is_plain = numbers.len() <= 3 && numbers.iter().all(Option::is_some);
    object["metadata"].is_object()
        && object["entrypoint"].is_string()
        && !version.is_empty()
        && !(is_plain && numbers >= vec![Some(2), Some(6)])
}

/// Whether a status has both conditions of a suspension.
fn is_suspending_and_suspended(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let is_true =
        |kind: &str| conditions.clone().any(|it| it["type"] == kind && it["status"] == "True");
    is_true("RayClusterSuspending") && is_true("RayClusterSuspended")
}
