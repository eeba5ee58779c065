//! Differences on purpose: by the name of a case, or by a rule that holds in any case.

use serde_json::Value;

/// Case or rule, what the operators of this project do, and why.
const DIFFERENCES: &str = include_str!("../differences.tsv");

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
];

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
    fn each_general_rule_stands_in_the_file() {
        for rule in GENERAL_RULES {
            assert!(by_name(rule.name).is_some(), "{}", rule.name);
        }
        let in_file = lines().filter(|(name, _)| name.starts_with("any:"));
        assert_eq!(in_file.count(), GENERAL_RULES.len());
    }
}
