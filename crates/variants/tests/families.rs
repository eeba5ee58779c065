//! Families as text: what follows for a parent and its variants.
//!
//! The first line is the policy, the second the parent, each further one a variant by its flavor. States are words: `quota=FLAVOR` of the
//! parent, `quota`, `admitted`, `evicted`, `given-up`, `blocked`, `open=SECONDS`, `created=SECONDS`, `released=SECONDS`
//! (requeued, unless it is `kept-out`), `refused=SECONDS` of a variant; `inactive`, `on-hold`, `deleted`,
//! `finished`, `count=N` of both.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crds::v1beta2::{ConcurrentAdmissionPolicy, Workload};
use jiff::Timestamp;
use variants::{
    FamilyDecision, FamilyRules, ParentTransition, VariantFamily, VariantStep, decide,
    membership::new_variant,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::new(1_767_268_800 + seconds, 0).expect("a time")
}

fn condition(kind: &str, reason: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": reason, "message": "said"})
}

fn word<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| match word.split_once('=') {
        Some((name, value)) => (name == key).then_some(value),
        None => (word == key).then_some(""),
    })
}

/// What both kinds of lines say.
fn common(workload: &mut Workload, line: &str, flavor: Option<&str>) {
    let has = |key| word(line, key).is_some();
    let mut conditions = Vec::new();
    if let Some(flavor) = flavor {
        conditions.push(condition("QuotaReserved", "QuotaReserved"));
        let set = json!({"name": "main", "flavors": {"cpu": flavor}, "count": 2});
        let admission = json!({"clusterQueue": "q", "podSetAssignments": [set]});
        workload.status.admission = serde_json::from_value(admission).expect("an admission");
    }
    if has("admitted") {
        conditions.push(condition("Admitted", "Admitted"));
    }
    if has("evicted") {
        conditions.push(condition("Evicted", "Preempted"));
    }
    if has("given-up") {
        conditions.push(condition("Evicted", "DeactivatedDueToAdmissionCheck"));
    }
    if has("blocked") {
        conditions.push(condition("BlockedOnPreemptionGates", "PreemptionGated"));
    }
    for (word, reason) in [("released", "PendingEvaluation"), ("refused", "WaitingForQuota")] {
        if let Some(since) = self::word(line, word).and_then(|text| text.parse().ok()) {
            let requeued = if has("kept-out") { "False" } else { "True" };
            conditions.push(json!({"type": "Requeued", "status": requeued, "reason": "Preempted"}));
            conditions.push(json!({"type": "QuotaReserved", "status": "False", "reason": reason,
                "lastTransitionTime": at(since).to_string()}));
        }
    }
    if let Some(created) = word(line, "created").and_then(|text| text.parse().ok()) {
        let time = json!(at(created).to_string());
        workload.metadata.creation_timestamp = serde_json::from_value(time).expect("a time");
    }
    if has("on-hold") {
        conditions.push(json!({"type": "QuotaReserved", "status": "False", "reason": "OnHold"}));
    }
    if has("finished") {
        conditions.push(condition("Finished", "Succeeded"));
    }
    workload.status.conditions = serde_json::from_value(json!(conditions)).expect("conditions");
    if has("inactive") || has("given-up") {
        workload.spec.active = Some(false);
    }
    if let Some(count) = word(line, "count").and_then(|text| text.parse().ok()) {
        workload.spec.pod_sets[0].count = Some(count);
    }
    if let Some(priority) = word(line, "priority").and_then(|text| text.parse().ok()) {
        workload.spec.priority = Some(priority);
    }
    if let Some(opened) = word(line, "open").and_then(|text| text.parse().ok()) {
        let gate = json!([{"name": "kueue.x-k8s.io/concurrent-admission", "position": "Open",
            "lastTransitionTime": at(opened).to_string()}]);
        workload.status.preemption_gates = serde_json::from_value(gate).expect("gates");
    }
}

fn parent(line: &str) -> Workload {
    let mut parent: Workload = serde_json::from_value(json!({
        "metadata": {"name": "job-a-12345", "namespace": "ns", "uid": "p",
            "labels": {"kueue.x-k8s.io/concurrent-admission-parent": "true"}},
        "spec": {"queueName": "lq", "maximumExecutionTimeSeconds": 60,
            "podSets": [{"name": "main", "count": 2, "template": {}}]},
    }))
    .expect("a Workload");
    common(&mut parent, line, word(line, "quota"));
    if word(line, "deleted").is_some() {
        parent.metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T12:00:00Z")).expect("a time");
    }
    parent
}

fn text(step: &VariantStep) -> String {
    match step {
        VariantStep::Create(one) => {
            let metadata = &one.metadata;
            let flavors = metadata.annotations.as_ref().expect("annotations");
            format!("create {} {flavors:?}", metadata.name.as_deref().unwrap_or_default())
        }
        VariantStep::Delete { variant, note } => format!("delete {variant}: {note}"),
        VariantStep::Activate { variant, note } => format!("activate {variant}: {note}"),
        VariantStep::Deactivate { variant, note } => format!("deactivate {variant}: {note}"),
        VariantStep::Finish { variant, reason, message } => {
            format!("finish {variant}: {reason}, {message}")
        }
        VariantStep::SetPriority(variant, to) => format!("priority {variant}: {}", to.value),
        VariantStep::Release(variant) => format!("release {variant}"),
        VariantStep::OpenGate(variant) => format!("open {variant}"),
        VariantStep::DeactivateParent => "deactivate the parent".to_owned(),
    }
}

fn summary(decision: &FamilyDecision) -> String {
    let mut lines: Vec<String> = decision.steps.iter().map(text).collect();
    lines.extend(decision.parent.as_ref().map(|transition| match transition {
        ParentTransition::Admit(one) => format!("parent: admitted as {}", one.variant),
        ParentTransition::Evict { reason, message } => {
            format!("parent: evicted, {reason}, {message}")
        }
    }));
    lines.extend(
        decision
            .again_at
            .map(|time| format!("again after {} s", time.as_second() - at(0).as_second())),
    );
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "expectations are made for the call")]
fn check(fixture: &str, expected: Expect) {
    let mut lines = fixture.trim().lines().map(str::trim);
    let policy_line = lines.next().expect("a policy");
    let parent = parent(lines.next().expect("a parent"));
    let mode = policy_line.split_whitespace().next().expect("a mode");
    let policy: ConcurrentAdmissionPolicy = serde_json::from_value(json!({"migration": {
        "mode": mode, "constraints": {"lastAcceptableFlavorName": word(policy_line, "last")},
    }}))
    .expect("a policy");
    let flavors: Vec<String> = ["a", "b", "c"].iter().map(|flavor| (*flavor).to_owned()).collect();
    let rules = FamilyRules { flavors: &flavors, policy: &policy, short_names: false };
    let variant = |line: &str| {
        let flavor = line.split_whitespace().next().expect("a flavor");
        let plain = self::parent("");
        let mut variant = new_variant(&plain, flavor, &rules);
        variant.metadata.name = Some(flavor.to_owned());
        common(&mut variant, line, word(line, "quota").map(|_| flavor));
        variant
    };
    let owned: Vec<Workload> = lines.map(variant).collect();
    let family = VariantFamily::new(&parent, &owned, Some(&rules));
    expected.assert_eq(&summary(&decide(&family, Some(&rules), at(1000))));
}

#[test]
fn each_flavor_gets_a_variant_and_one_that_is_gone_loses_it() {
    check(
        "TryPreferredFlavors
         parent
         b
         z",
        expect![[r#"
            create job-a-variant-a-7e45f {"kueue.x-k8s.io/workload-allowed-resource-flavors": "a"}
            delete z: Variant Workload "ns/z" deleted; flavor "z" no longer in ClusterQueue
        "#]],
    );
    // A variant that is there competes: that of a worse flavor would be admitted first.
    check(
        "TryPreferredFlavors
         parent
         a
         b",
        expect![[r#"
            create job-a-variant-c-24a22 {"kueue.x-k8s.io/workload-allowed-resource-flavors": "c"}
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent count=5
         a
         c count=5",
        expect![[r#"
            delete a: Variant Workload "ns/a" deleted; its parent has changed
        "#]],
    );
    // Quota that the job runs with stays until it is evicted.
    check(
        "TryPreferredFlavors
         parent quota=z admitted
         a
         b
         c
         z quota admitted",
        expect![[""]],
    );
    check(
        "TryPreferredFlavors
         parent inactive
         a inactive
         b given-up",
        expect![[r#"
            delete b: Variant Workload "ns/b" deleted; its parent is not active
        "#]],
    );
}

#[test]
fn a_variant_is_like_its_parent() {
    check(
        "TryPreferredFlavors
         parent count=5
         a
         b quota admitted
         c count=5",
        expect![[r#"
            delete a: Variant Workload "ns/a" deleted; its parent has changed
            delete b: Variant Workload "ns/b" deleted; its parent has changed
            deactivate c: Variant Workload deactivated due to being lower priority than admitted Variant "ns/b"
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent quota=b admitted priority=7
         a priority=7
         b quota admitted
         c inactive",
        expect![[r#"
            priority b: 7
            priority c: 7
        "#]],
    );
}

#[test]
fn the_parent_is_admitted_as_its_first_admitted_variant() {
    check(
        "RetainFirstAdmission
         parent
         a
         b quota admitted
         c quota",
        expect![[r#"
            deactivate a: Variant Workload deactivated due to RetainFirstAdmission: another Variant "ns/b" is admitted
            deactivate c: Variant Workload deactivated due to RetainFirstAdmission: another Variant "ns/b" is admitted
            parent: admitted as b
        "#]],
    );
    check(
        "RetainFirstAdmission
         parent quota=b admitted
         a inactive
         b quota admitted
         c quota evicted inactive",
        expect![[r#"
            release c
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent
         a
         b quota
         c",
        expect![[""]],
    );
}

#[test]
fn better_flavors_are_tried_up_to_the_last_acceptable_one() {
    check(
        "TryPreferredFlavors
         parent quota=b admitted
         a inactive
         b quota admitted
         c",
        expect![[r#"
            activate a: Variant Workload activated due to being higher priority than admitted Variant "ns/b"
            deactivate c: Variant Workload deactivated due to being lower priority than admitted Variant "ns/b"
        "#]],
    );
    check(
        "TryPreferredFlavors last=a
         parent quota=c admitted
         a
         b
         c quota admitted",
        expect![[r#"
            deactivate b: Variant Workload deactivated due to being below lastAcceptableFlavor: "a" and another Variant admitted "ns/c"
        "#]],
    );
    check(
        "TryPreferredFlavors last=b
         parent quota=c admitted
         a inactive
         b
         c quota admitted",
        expect![[r#"
            activate a: Variant Workload activated due to being at least lastAcceptableFlavor: "b" and higher priority than admitted Variant "ns/c"
        "#]],
    );
}

#[test]
fn the_job_stops_before_its_variant_releases_quota() {
    check(
        "TryPreferredFlavors
         parent quota=b admitted
         a
         b quota admitted evicted
         c inactive",
        expect![[r#"
            parent: evicted, VariantEvicted, Admitted variant was evicted
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent quota=b admitted evicted
         a quota admitted
         b quota admitted evicted
         c inactive",
        expect![[""]],
    );
    check(
        "TryPreferredFlavors
         parent
         a
         b quota admitted evicted
         c inactive",
        expect![[r#"
            release b
            activate c: Variant Workload activated due to no other Variant being admitted
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent quota=b admitted
         a
         b
         c",
        expect![[r#"
            parent: evicted, ConcurrentAdmission, No variant is running
        "#]],
    );
}

#[test]
fn variants_end_with_their_parent() {
    check(
        "TryPreferredFlavors
         parent quota=b admitted finished
         a
         b quota admitted
         c finished",
        expect![[r#"
            finish a: Succeeded, said
            finish b: Succeeded, said
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent inactive quota=b admitted
         a
         b quota admitted
         c given-up",
        expect![[r#"
            delete c: Variant Workload "ns/c" deleted; its parent is not active
            deactivate a: Variant Workload deactivated due to Parent Workload "ns/job-a-12345" not active
            deactivate b: Variant Workload deactivated due to Parent Workload "ns/job-a-12345" not active
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent on-hold
         a inactive
         b quota admitted
         c inactive",
        expect![[r#"
            deactivate b: Variant Workload deactivated due to Parent Workload "ns/job-a-12345" not active
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent deleted
         a
         b quota evicted",
        expect![[""]],
    );
}

#[test]
fn a_variant_that_was_given_up_competes_no_more() {
    check(
        "TryPreferredFlavors
         parent
         a given-up
         b inactive
         c",
        expect![[r#"
            activate b: Variant Workload activated due to no other Variant being admitted
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent
         a given-up
         b given-up
         c given-up",
        expect![[r#"
            deactivate the parent
        "#]],
    );
}

#[test]
fn one_gate_is_opened_at_a_time() {
    check(
        "TryPreferredFlavors
         parent
         a
         b blocked
         c blocked",
        expect![[r#"
            open b
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent
         a
         b blocked open=900
         c blocked",
        expect![[r#"
            again after 1200 s
        "#]],
    );
    check(
        "TryPreferredFlavors
         parent
         a
         b blocked open=700
         c blocked",
        expect![[r#"
            open c
        "#]],
    );
    // The gate of one that is not admissible any more counts for nothing.
    check(
        "TryPreferredFlavors
         parent
         a blocked
         b quota open=900
         c",
        expect![[r#"
            open a
        "#]],
    );
}

/// kueue#14272
#[test]
fn no_gate_is_opened_before_better_variants_were_evaluated() {
    for (better, expected) in [
        ("a created=900", "again after 1200 s"),
        ("a created=700", "open b"),
        ("a created=100 released=900", "again after 1200 s"),
        ("a created=100 released=700", "open b"),
        // A cycle has given its reason.
        ("a created=900 refused=900", "open b"),
        ("a created=900 blocked", "open a"),
        // It is in no queue.
        ("a created=900 released=900 kept-out", "open b"),
        ("a created=900 inactive given-up", "open b"),
        ("a created=900 quota", "open b"),
        // A worse one.
        ("c created=900", "open b"),
    ] {
        let flavors = ["a", "b", "c"].map(str::to_owned);
        let policy: ConcurrentAdmissionPolicy =
            serde_json::from_value(json!({"migration": {"mode": "TryPreferredFlavors"}}))
                .expect("a policy");
        let rules = FamilyRules { flavors: &flavors, policy: &policy, short_names: false };
        let parent = parent("");
        let variant = |line: &str| {
            let flavor = line.split_whitespace().next().expect("a flavor");
            let mut variant = new_variant(&parent, flavor, &rules);
            variant.metadata.name = Some(flavor.to_owned());
            common(&mut variant, line, word(line, "quota").map(|_| flavor));
            variant
        };
        let owned = [variant(better), variant("b created=900 blocked")];
        let family = VariantFamily::new(&parent, &owned, Some(&rules));
        let lines = summary(&decide(&family, Some(&rules), at(1000)));
        let gates =
            lines.lines().filter(|line| line.starts_with("open") || line.starts_with("again"));
        assert_eq!(gates.collect::<Vec<_>>(), [expected], "{better}");
    }
}
