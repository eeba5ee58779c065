//! Differences on purpose: by the name of a case, or by a rule that holds in any case.

#[cfg(test)]
mod documents;

use serde_json::Value;

/// Case or rule, what the operators of this project do, and why.
const DIFFERENCES: &str = include_str!("../differences.tsv");

/// In the message of a RayJob with a submitter that ended long before its job.
const LATE_END: &str = "but the ray job did not reach terminal state within";

/// What the difference may be about in any case.
struct GeneralRule {
    /// In the first column of the file.
    name: &'static str,
    /// Whether the input of a case is one that the rule is about.
    concerns: fn(&Value) -> bool,
    /// Whether a difference follows from the rule.
    explains: fn(&str) -> bool,
}

const GENERAL_RULES: &[GeneralRule] = &[
    GeneralRule {
        name: "any:replicas-outside-their-bounds",
        concerns: has_replicas_outside_bounds,
        explains: |difference| difference.contains(".status.desired"),
    },
    GeneralRule {
        name: "any:group-of-the-head",
        concerns: |case| any_object(case, &|it| it["groupName"] == "headgroup"),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:upgrade-without-steps",
        concerns: |case| any_object(case, &|it| it["stepSizePercent"] == 0),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:stop-without-a-job",
        concerns: |case| any_object(case, &|it| it["submissionMode"] == "InteractiveMode"),
        explains: |difference| difference.contains("/api/jobs//stop"),
    },
    GeneralRule {
        name: "any:service-of-a-renamed-head",
        concerns: |case| any_object(case, &has_renamed_head),
        explains: |difference| {
            difference.contains("-head-svc.spec.selector.app.kubernetes.io/name")
        },
    },
    GeneralRule {
        name: "any:long-account-of-the-head",
        concerns: |case| any_object(case, &has_changed_account),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:metadata-of-an-old-ray",
        concerns: |case| any_object(case, &has_refused_metadata),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:late-end-of-a-job",
        concerns: |case| case.to_string().contains(LATE_END),
        explains: |difference| difference.contains("RayJob/") && difference.contains(".status."),
    },
    GeneralRule {
        name: "any:suspending-and-suspended",
        concerns: |case| any_object(case, &is_suspending_and_suspended),
        explains: |_| true,
    },
    GeneralRule {
        name: "any:time-to-live-after-success",
        concerns: |case| {
            case["kind"] == "AppWrapper" && case.to_string().contains("successTTLDuration")
        },
        explains: |difference| {
            difference.contains("is not recorded") || difference.contains(".status.conditions")
        },
    },
];

/// Differences that the comparison takes for equal, since they are in most cases of a kind: the name in the file, and a part of
/// the cases that show them.
const EQUAL: &[(&str, &str)] = &[("equal:health-of-a-proxy", HEALTH)];

/// The path of the health of a proxy of Serve.
pub(crate) const HEALTH: &str = "/-/healthz";

/// Rules and reasons of differences that the comparison of a case takes for equal.
pub(crate) fn taken_for_equal(case: &Value) -> impl Iterator<Item = &'static str> {
    let text = case.to_string();
    let shown = EQUAL.iter().filter(move |(_, part)| text.contains(part));
    shown.filter_map(|(name, _)| by_name(name))
}

/// Rule and reason of the difference of a case of this name.
pub(crate) fn by_name(case: &str) -> Option<&'static str> {
    lines().find(|(name, _)| *name == case).map(|it| it.1)
}

/// Rule and reason that explain all differences of a case.
pub(crate) fn by_rule(case: &Value, differences: &[String]) -> Option<&'static str> {
    let rule = GENERAL_RULES
        .iter()
        .find(|rule| (rule.concerns)(case) && differences.iter().all(|it| (rule.explains)(it)))?;
    by_name(rule.name)
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    DIFFERENCES.lines().filter_map(|line| line.split_once('\t'))
}

/// Whether a step gives a group more replicas than its greatest number, or less than its least.
fn has_replicas_outside_bounds(case: &Value) -> bool {
    let number = |object: &Value, field: &str| object[field].as_i64();
    any_object(case, &|group| {
        let bounds = (number(group, "minReplicas"), number(group, "maxReplicas"));
        let replicas = number(group, "replicas");
        matches!((replicas, bounds), (Some(wanted), (Some(fewest), Some(most))) if wanted > most || wanted < fewest)
    })
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

/// Whether any object of a case fulfils a condition.
fn any_object(value: &Value, condition: &dyn Fn(&Value) -> bool) -> bool {
    match value {
        Value::Object(fields) => {
            condition(value) || fields.values().any(|it| any_object(it, condition))
        }
        Value::Array(items) => items.iter().any(|it| any_object(it, condition)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_explains_only_what_follows_from_it() {
        let group = |replicas| json!({"replicas": replicas, "minReplicas": 0, "maxReplicas": 3});
        let case = |replicas| json!({"steps": [{"do": [{"group": group(replicas)}]}]});
        let found = |text: &str| vec![text.to_owned()];
        let sum = "step 0: RayCluster/c1.status.desiredCPU";
        assert!(by_rule(&case(4), &found(sum)).is_some());
        assert!(by_rule(&case(-1), &found(sum)).is_some());
        assert_eq!(by_rule(&case(3), &found(sum)), None);
        assert_eq!(by_rule(&case(4), &found("step 0: Pod/x is missing")), None);
        assert!(by_rule(&json!({"groupName": "headgroup"}), &found("any")).is_some());
    }

    #[test]
    fn a_rule_concerns_only_the_specs_that_it_is_about() {
        let job = |version: &str| {
            json!({
                "entrypoint": "x", "metadata": {"a": "b"},
                "rayClusterSpec": {"rayVersion": version},
            })
        };
        for version in ["2.5.1", "nightly", "2.53.0rc1", "1"] {
            assert!(has_refused_metadata(&job(version)), "{version}");
        }
        for version in ["", "2.6.0", "2.6", "v2.53.0", "3"] {
            assert!(!has_refused_metadata(&job(version)), "{version}");
        }
        let head = |account: &str| {
            let template = json!({"spec": {"serviceAccountName": account}});
            json!({"enableInTreeAutoscaling": true, "headGroupSpec": {"template": template}})
        };
        assert!(has_changed_account(&head(&"a".repeat(51))));
        assert!(has_changed_account(&head("1a")));
        assert!(!has_changed_account(&head("a")));
        let status = |suspended: &str| {
            json!({"conditions": [
                {"type": "RayClusterSuspending", "status": "True"},
                {"type": "RayClusterSuspended", "status": suspended},
            ]})
        };
        assert!(is_suspending_and_suspended(&status("True")));
        assert!(!is_suspending_and_suspended(&status("False")));
        let stop = vec!["step 1: no request POST http://h:8265/api/jobs//stop".to_owned()];
        assert!(by_rule(&json!({"submissionMode": "InteractiveMode"}), &stop).is_some());
        assert_eq!(by_rule(&json!({"submissionMode": "HTTPMode"}), &stop), None);
        let labels = json!({"app.kubernetes.io/name": "mine"});
        let template = json!({"metadata": {"labels": labels}});
        let renamed = json!({"headGroupSpec": {"template": template}});
        let selector = |key: &str| vec![format!("step 0: Service/rj-head-svc.spec.selector.{key}")];
        assert!(by_rule(&renamed, &selector("app.kubernetes.io/name")).is_some());
        assert_eq!(by_rule(&renamed, &selector("app")), None);
    }

    fn rows(prefix: &str) -> usize {
        lines().filter(|(name, _)| name.starts_with(prefix)).count()
    }

    #[test]
    fn each_general_rule_stands_in_the_file() {
        let general = GENERAL_RULES.iter().map(|rule| rule.name);
        for name in general.chain(EQUAL.iter().map(|(name, _)| *name)) {
            assert!(by_name(name).is_some(), "{name}");
        }
        assert_eq!((rows("any:"), rows("equal:")), (GENERAL_RULES.len(), EQUAL.len()));
    }

    #[test]
    fn each_row_has_a_case_a_rule_and_a_reason() {
        let mut seen = BTreeSet::new();
        for line in DIFFERENCES.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            assert!(fields.len() == 3 && fields.iter().all(|it| !it.is_empty()), "{line}");
            assert!(seen.insert(fields[0]), "{line}");
        }
    }

    #[test]
    fn a_difference_that_is_taken_for_equal_is_counted() {
        let asks = json!({"steps": [{"requests": ["GET http://h:8000/-/healthz"]}]});
        assert_eq!(taken_for_equal(&asks).count(), 1);
        assert_eq!(taken_for_equal(&json!({"steps": []})).count(), 0);
    }
}
