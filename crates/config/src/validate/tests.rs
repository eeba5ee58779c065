//! Texts of refusals. `tests.rs` of the crate has a case of every validated field.

use crate::{Configuration, gates::Gates};

/// What is wrong with a file; empty if it is valid.
fn problems(body: &str) -> Vec<String> {
    let text = format!("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{body}\n");
    let Err(error) = Configuration::load(&text, None) else { return Vec::new() };
    let text = error.to_string();
    let list = text.strip_prefix("invalid configuration: ").unwrap_or_else(|| panic!("{text}"));
    list.split("; ").map(str::to_owned).collect()
}

fn check(cases: &[(&str, &[&str])]) {
    for (body, expected) in cases {
        assert_eq!(problems(body), *expected, "{body}");
    }
}

/// Items of a list, with their numbers.
fn numbered(n_items: usize, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..n_items).map(item).collect();
    items.join(", ")
}

fn custom_labels(labels: &str) -> Vec<String> {
    problems(&format!("metrics: {{customLabels: [{labels}]}}"))
}

#[test]
fn every_kind_may_have_tracked_values_and_workloads_must() {
    let tracked = |kind: &str, n_values: usize| {
        let values = numbered(n_values, |i| format!("v{i}"));
        custom_labels(&format!("{{name: a, sourceKind: {kind}, trackedValues: [{values}]}}"))
    };
    let field = "metrics.customLabels[0].trackedValues";
    for kind in ["ClusterQueue", "LocalQueue", "Cohort"] {
        for n_values in [0, 1, 16] {
            assert_eq!(tracked(kind, n_values), [""; 0], "{kind} {n_values}");
        }
        let many = format!("{field}: Too many: 17: must have at most 16 items");
        assert_eq!(tracked(kind, 17), [many]);
    }
    assert_eq!(tracked("Workload", 12), [""; 0]);
    for (n_values, text) in [(0, "must not be empty"), (13, "must not be greater than 12")] {
        let text = format!("{field}: Invalid value: {text} when sourceKind is 'Workload'");
        assert_eq!(tracked("Workload", n_values), [text]);
    }
}

#[test]
fn tracked_values_are_distinct() {
    for kind in ["ClusterQueue", "Workload"] {
        let label = format!("{{name: a, sourceKind: {kind}, trackedValues: [x, y, x]}}");
        let text =
            "metrics.customLabels[0].trackedValues: Invalid value: must not contain duplicates";
        assert_eq!(custom_labels(&label), [text]);
    }
}

#[test]
fn the_number_of_custom_labels_is_bounded() {
    let of_kind = |kind: &str, n_labels: usize| {
        let tracked = if kind == "Workload" { ", trackedValues: [x]" } else { "" };
        numbered(n_labels, |i| format!("{{name: {kind}{i}, sourceKind: {kind}{tracked}}}"))
    };
    let refused = |kind: &str, found: usize, most: usize| {
        format!(
            "metrics.customLabels: Invalid value: too many custom labels for source kind {kind}: found {found}, expected <= {most}"
        )
    };
    assert_eq!(custom_labels(&of_kind("Cohort", 6)), [""; 0]);
    assert_eq!(custom_labels(&of_kind("Cohort", 9)), [refused("Cohort", 9, 6)]);
    assert_eq!(custom_labels(&of_kind("Workload", 3)), [refused("Workload", 3, 2)]);
    let all = [("ClusterQueue", 6), ("LocalQueue", 6), ("Cohort", 6), ("Workload", 2)];
    let all = all.map(|(kind, n_labels)| of_kind(kind, n_labels)).join(", ");
    assert_eq!(custom_labels(&all), [""; 0]);
    let many = format!("{all}, {{name: more}}");
    let text = "metrics.customLabels: Too many: 21: must have at most 20 items".to_owned();
    assert_eq!(custom_labels(&many), [text, refused("ClusterQueue", 7, 6)]);
}

#[test]
fn names_and_keys_of_custom_labels_are_validated() {
    for name in ["a", "Team_2"] {
        assert_eq!(custom_labels(&format!("{{name: {name}}}")), [""; 0]);
    }
    let fields = |label: &str| -> Vec<String> {
        let field = |text: String| text.split_once(": ").map(|(field, _)| field.to_owned());
        custom_labels(label).into_iter().filter_map(field).collect()
    };
    let first = |field: &str| format!("metrics.customLabels[0].{field}");
    for (label, field) in [
        ("{name: _a, sourceLabelKey: a}", "name"),
        ("{name: a-b}", "name"),
        ("{name: a_}", "name"),
        ("{name: a, sourceLabelKey: 'a b'}", "sourceLabelKey"),
        ("{name: a, sourceAnnotationKey: /a}", "sourceAnnotationKey"),
    ] {
        let found = fields(label);
        assert!(!found.is_empty() && found.iter().all(|one| *one == first(field)), "{found:?}");
    }
    assert_eq!(fields("{name: a_, sourceLabelKey: a}"), [""; 0], "the name is no key then");
    let twice = "metrics.customLabels[1].name: Duplicate value: \"a\"";
    assert_eq!(custom_labels("{name: a}, {name: a, sourceKind: Cohort}"), [twice]);
    let both = "{name: a, sourceLabelKey: x, sourceAnnotationKey: y}";
    let text = "metrics.customLabels[0]: Invalid value: sourceLabelKey and sourceAnnotationKey are mutually exclusive";
    assert_eq!(custom_labels(both), [text]);
    assert_eq!(fields("{name: a, sourceLabelKey: '', sourceAnnotationKey: y}"), [""; 0]);
}

#[test]
fn names_of_the_certificates_are_validated_if_the_manager_creates_them() {
    let names = |enable: bool, secret: &str, service: &str| {
        let names = format!("webhookSecretName: '{secret}', webhookServiceName: '{service}'");
        problems(&format!("internalCertManagement: {{enable: {enable}, {names}}}"))
    };
    assert_eq!(names(true, "a.b-1", "a-b"), [""; 0]);
    assert_eq!(names(false, "A", "1"), [""; 0]);
    let secret = "internalCertManagement.webhookSecretName: Invalid value: ";
    let service = "internalCertManagement.webhookServiceName: Invalid value: ";
    let starts = |found: &[String], expected: &[&str]| {
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(one, start)| one.starts_with(start))
    };
    for wrong in ["", "A", "a_b", "-a"] {
        let found = names(true, wrong, wrong);
        let expected = [format!("{secret}\"{wrong}\": "), format!("{service}\"{wrong}\": ")];
        assert!(starts(&found, &[&expected[0], &expected[1]]), "{found:?}");
    }
    for wrong in ["1a", "a.b", &"a".repeat(64)] {
        let found = names(true, "a", wrong);
        assert!(starts(&found, &[service]), "{found:?}");
    }
}

#[test]
fn the_visibility_server_has_an_address_and_a_port() {
    check(&[
        ("visibilityServer: {bindAddress: '', bindPort: 1}", &[]),
        ("visibilityServer: {bindAddress: '::1'}", &[]),
        (
            "visibilityServer: {bindAddress: localhost}",
            &[
                "visibilityServer.bindAddress: Invalid value: \"localhost\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        ),
        (
            "visibilityServer: {bindPort: 0}",
            &[
                "visibilityServer.bindPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            ],
        ),
    ]);
}

#[test]
fn an_external_framework_is_no_enabled_one() {
    let twice = "integrations.externalFrameworks[0]: Duplicate value: \"Job.v1.batch\"";
    let again = "integrations.externalFrameworks[1]: Duplicate value: \"A.v1.b\"";
    check(&[
        ("integrations: {frameworks: [batch/job], externalFrameworks: [Job.v1.batch]}", &[twice]),
        ("integrations: {frameworks: [pod], externalFrameworks: [Job.v1.batch]}", &[]),
        ("integrations: {frameworks: [batch/job], externalFrameworks: [Job.v2.batch]}", &[]),
        ("integrations: {externalFrameworks: [A.v1.b, A.v1.b]}", &[again]),
    ]);
}

/// Without its integration a kind has no adapter, and Deployments never have one: their pods are copied.
#[test]
fn a_mirrored_kind_is_none_of_an_enabled_integration_with_copies() {
    let body = |frameworks: &str, name: &str| {
        let external = format!("multiKueue: {{externalFrameworks: [{{name: {name}}}]}}");
        format!("integrations: {{frameworks: [{frameworks}]}}\n{external}")
    };
    let refused = ["multiKueue.externalFrameworks[0].name: is a built-in framework"];
    for (frameworks, name) in [
        ("batch/job", "Job.v1.batch"),
        // A kind is one here, whatever its version.
        ("batch/job", "Job.v2.batch"),
        ("kubeflow.org/pytorchjob", "PyTorchJob.v1.kubeflow.org"),
    ] {
        assert_eq!(problems(&body(frameworks, name)), refused, "{frameworks}: {name}");
    }
    for (frameworks, name) in [
        ("batch/job", "PyTorchJob.v1.kubeflow.org"),
        ("pod", "Job.v1.batch"),
        ("batch/job", "Deployment.v1.apps"),
        ("deployment", "Deployment.v1.apps"),
    ] {
        assert_eq!(problems(&body(frameworks, name)), [""; 0], "{frameworks}: {name}");
    }
}

#[test]
fn the_interactive_mode_of_a_command_is_a_known_one() {
    let found = |list: &str, mode: &str| {
        let exec = format!("{{command: c, apiVersion: v, interactiveMode: {mode}}}");
        problems(&format!(
            "multiKueue: {{clusterProfile: {{{list}: [{{name: a, execConfig: {exec}}}]}}}}"
        ))
    };
    for list in ["accessProviders", "credentialsProviders"] {
        for mode in ["''", "Never", "IfAvailable", "Always"] {
            assert_eq!(found(list, mode), [""; 0], "{mode}");
        }
        let path = format!("multiKueue.clusterProfile.{list}[0].execConfig.interactiveMode");
        let known = "supported values: \"Never\", \"IfAvailable\", \"Always\"";
        let text = format!("{path}: Unsupported value: \"Sometimes\": {known}");
        assert_eq!(found(list, "Sometimes"), [text]);
    }
}

#[test]
fn prefixes_are_not_excluded_where_undeclared_resources_are_ignored() {
    let body = "resources: {quotaCheckStrategy: IgnoreUndeclared, excludeResourcePrefixes: [a]}";
    let text = format!("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{body}\n");
    let config = Configuration::load(&text, None).expect("valid without gates");
    let refusal = |flag: &str| {
        let gates = Gates::parse(flag).expect("gates");
        config.check_with(&gates).err().map(|error| error.to_string())
    };
    let expected = "invalid configuration: resources.quotaCheckStrategy: Invalid value: \"IgnoreUndeclared\": excludeResourcePrefixes is not allowed when quotaCheckStrategy is IgnoreUndeclared";
    assert_eq!(refusal("").as_deref(), Some(expected));
    assert_eq!(refusal("QuotaCheckStrategy=false"), None, "the strategy has no effect");
}

#[test]
fn device_classes_are_mapped_once() {
    let path = "resources.deviceClassMappings";
    let found =
        |mappings: &str| problems(&format!("resources: {{deviceClassMappings: [{mappings}]}}"));
    let counter = |name: &str| format!("{{counter: {{name: {name}}}}}");
    let mapping = |name: &str, classes: &str, sources: &str| {
        format!("{{name: {name}, deviceClassNames: [{classes}], sources: [{sources}]}}")
    };
    let both = |first: &str, second: &str| {
        found(&[mapping("a", "c", first), mapping("b", "d, c", second)].join(", "))
    };
    let one = |text: &str| [format!("{path}{text}")];
    assert_eq!(found(&mapping("a", "c", "")), [""; 0]);
    assert_eq!(
        found(&[mapping("a", "c", ""), mapping("a", "d", "")].join(", ")),
        one("[1].name: Duplicate value: \"a\"")
    );
    assert_eq!(
        found(&mapping("a", "", "")),
        one("[0].deviceClassNames: Required value: at least one device class name is required")
    );
    assert_eq!(
        found(&mapping("a", "c, c", "")),
        one("[0].deviceClassNames[1]: Duplicate value: \"c\"")
    );
    let mapped = one(
        "[1].deviceClassNames[1]: Invalid value: \"c\": device class already mapped to resource a",
    );
    assert_eq!(both("", ""), mapped);
    assert_eq!(both(&counter("x"), ""), mapped);
    assert_eq!(both(&counter("x"), &counter("z")), [""; 0], "each counts another counter");
    assert_eq!(
        both(&counter("x"), &counter("x")),
        one(
            "[1].deviceClassNames[1]: Invalid value: \"c\": device class already has a counter source for counter \"x\""
        )
    );
    let mixed = format!("{}, {{capacity: {{name: z}}}}", counter("x"));
    assert_eq!(
        found(&mapping("a", "c", &mixed)),
        one(
            "[0].sources: Invalid value: 2: cannot mix counter and capacity sources in the same mapping"
        )
    );
}

#[test]
fn keys_and_values_of_selectors_are_validated() {
    for (block, path) in [
        ("managedJobsNamespaceSelector: SELECTOR", "managedJobsNamespaceSelector"),
        (
            "metrics: {localQueueMetrics: {localQueueSelector: SELECTOR}}",
            "metrics.localQueueMetrics.localQueueSelector",
        ),
    ] {
        let fields = |selector: &str| -> Vec<String> {
            let found = problems(&block.replace("SELECTOR", selector));
            let field = |text: &str| text.split_once(": ").map(|(field, _)| field.to_owned());
            found.iter().filter_map(|text| field(text)).collect()
        };
        for (selector, field) in [
            ("{matchLabels: {'a b': c}}", "matchLabels"),
            ("{matchLabels: {a: 'b c'}}", "matchLabels"),
            ("{matchExpressions: [{key: '/a', operator: In, values: [b]}]}", "key"),
            ("{matchExpressions: [{key: a, operator: In, values: [b, 'b c']}]}", "values[1]"),
            ("{matchExpressions: [{key: a, operator: In}]}", "values"),
            ("{matchExpressions: [{key: a, operator: DoesNotExist, values: [b]}]}", "values"),
        ] {
            let found = fields(selector);
            let inner = if field == "matchLabels" { "" } else { "matchExpressions[0]." };
            let field = format!("{path}.{inner}{field}");
            assert!(found.contains(&field), "{selector}: {found:?}");
        }
        assert_eq!(fields("{matchLabels: {example.com/a: b}}"), [""; 0]);
    }
}
