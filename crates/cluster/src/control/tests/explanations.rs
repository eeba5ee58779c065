//! Explanations of pending Workloads: Events, and what the visibility API shows.

use std::collections::BTreeSet;

use super::{cluster::Cluster, *};

/// Events with an explanation since the last call: name and note.
fn explained(cluster: &mut Cluster) -> Vec<String> {
    let events = cluster.take_events().into_iter();
    let explained = events.filter_map(|event| {
        let (name, note) = event.split_once(" kueue-admission AdmissionExplained: ")?;
        Some(format!("{name}: {note}"))
    });
    explained.collect()
}

/// Lets seconds pass one by one, as the wake-ups of the manager do.
fn seconds(cluster: &mut Cluster, seconds: usize) {
    for _ in 0..seconds {
        cluster.wait(1).settle();
    }
}

/// A cluster in which `waits` requests 5 of 8 cpus beside two Workloads with quota.
fn full() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.workload("train-77", 6, &json!({})).settle();
    cluster.workload("b", 2, &json!({})).settle();
    cluster.wait(1).workload("waits", 5, &json!({})).settle();
    cluster.take_events();
    cluster
}

const MISSING_5: &str = "waits: Admissible with +5 cpu in flavor default; or when train-77 ends. Missing: flavor \
                         default: 5 of 5 cpu (used by cq 8).";

#[test]
fn a_workload_that_stays_pending_is_explained_once() {
    let mut cluster = full();
    seconds(&mut cluster, 10);
    assert_eq!(explained(&mut cluster), [""; 0], "the reason is new");
    assert!(cluster.control.decide(cluster.now).wake.is_some(), "the explanation needs no input");
    seconds(&mut cluster, 2);
    assert_eq!(explained(&mut cluster), [MISSING_5]);
    assert!(cluster.condition("waits", "QuotaReserved").ends_with(" 5 more needed"));
    cluster.take_writes();
    seconds(&mut cluster, 150);
    assert_eq!(explained(&mut cluster), [""; 0], "nothing is new");
    assert_eq!(cluster.take_writes(), [""; 0], "nothing is written");
}

#[test]
fn a_changed_reason_is_explained_again_within_a_minute() {
    let mut cluster = full();
    seconds(&mut cluster, 15);
    assert_eq!(explained(&mut cluster), [MISSING_5]);
    cluster.delete("b").settle();
    seconds(&mut cluster, 50);
    assert_eq!(explained(&mut cluster), [""; 0], "at most once a minute");
    seconds(&mut cluster, 25);
    let note = "waits: Admissible with +3 cpu in flavor default; or when train-77 ends. Missing: flavor \
                default: 3 of 5 cpu (used by cq 6).";
    assert_eq!(explained(&mut cluster), [note]);
}

#[test]
fn a_reason_that_never_rests_is_explained() {
    let mut cluster = full();
    let (mut notes, mut reasons) = (Vec::new(), BTreeSet::new());
    for round in 0..12 {
        let quota =
            json!([{"name": "cpu", "nominalQuota": if round % 2 == 1 { "8" } else { "9" }}]);
        let flavors = json!([{"name": "default", "resources": quota}]);
        let groups = json!([{"coveredResources": ["cpu"], "flavors": flavors}]);
        cluster.queue(&json!({"resourceGroups": groups})).settle();
        seconds(&mut cluster, 5);
        notes.extend(explained(&mut cluster));
        reasons.insert(cluster.condition("waits", "QuotaReserved"));
    }
    assert_eq!(reasons.len(), 2, "the message changes");
    assert!((1..=2).contains(&notes.len()), "{notes:?}");
}

#[test]
fn an_end_that_is_over_is_not_named_any_more() {
    let mut cluster = full();
    seconds(&mut cluster, 15);
    assert_eq!(explained(&mut cluster), [MISSING_5]);
    // It needs the same from now on, of another Workload.
    cluster.workload("train-78", 6, &json!({"spec": {"priority": 9}})).settle();
    cluster.delete("train-77").settle();
    cluster.settle();
    assert!(cluster.condition("train-78", "QuotaReserved").starts_with("True"));
    seconds(&mut cluster, 70);
    assert_eq!(explained(&mut cluster), [MISSING_5.replace("train-77", "train-78")]);
}

#[test]
fn the_explanation_ends_with_the_reservation() {
    let mut cluster = full();
    seconds(&mut cluster, 15);
    cluster.delete("train-77").settle();
    assert!(cluster.condition("waits", "QuotaReserved").starts_with("True"));
    let workload = Key { namespace: Some("ns".into()), name: "waits".into() };
    let text = MISSING_5.strip_prefix("waits: ").map(Into::into);
    let published =
        [text, None].map(|text| AdmissionExplained { workload: workload.clone(), text });
    assert_eq!(cluster.explained, published);
}

#[test]
fn one_workload_is_explained_in_a_decision() {
    let mut cluster = Cluster::new();
    for at in 0..10 {
        cluster.workload(&format!("w{at}"), 9 + at, &json!({}));
    }
    cluster.settle().wait(1).settle().wait(10);
    cluster.take_events();
    let mut counts = Vec::new();
    for _ in 0..16 {
        let step = cluster.control.decide(cluster.now);
        cluster.take(step);
        counts.push(explained(&mut cluster).len());
        cluster.now += jiff::SignedDuration::from_millis(250);
    }
    assert!(counts.iter().all(|&count| count <= 1), "{counts:?}");
    assert_eq!(counts.iter().sum::<usize>(), 10, "up to four in a second");
}

/// The texts that are shown, by Workload.
fn shown(cluster: &Cluster) -> BTreeMap<Key, Arc<str>> {
    let mut texts = BTreeMap::new();
    for AdmissionExplained { workload, text } in cluster.explained.clone() {
        match text {
            Some(text) => texts.insert(workload, text),
            None => texts.remove(&workload),
        };
    }
    texts
}

#[test]
fn what_the_condition_says_of_a_stopped_queue_is_not_explained() {
    let mut cluster = Cluster::new();
    for at in 0..12 {
        cluster.workload(&format!("w{at}"), 9 + at, &json!({}));
    }
    cluster.settle();
    seconds(&mut cluster, 30);
    assert_eq!((explained(&mut cluster).len(), shown(&cluster).len()), (12, 12));
    cluster.queue(&json!({"stopPolicy": "Hold"})).settle();
    seconds(&mut cluster, 5);
    assert_eq!(
        cluster.condition("w3", "QuotaReserved"),
        "False Suspended: ClusterQueue cq is inactive"
    );
    assert_eq!(shown(&cluster), BTreeMap::new(), "the texts were about quota");
    seconds(&mut cluster, 100);
    assert_eq!(explained(&mut cluster), [""; 0], "the condition says it");
    cluster.queue(&json!({"stopPolicy": "None"})).settle();
    seconds(&mut cluster, 90);
    let texts = shown(&cluster);
    assert!(texts.values().all(|one| one.starts_with("Admissible")), "{texts:?}");
    assert_eq!(texts.len(), 12);
    assert_eq!(
        explained(&mut cluster).len(),
        12,
        "replicas that do not lead dropped the texts of the last Events"
    );
}

#[test]
fn equal_workloads_are_explained_after_the_first_of_each_class() {
    let mut cluster = Cluster::new();
    cluster.queue(&json!({"stopPolicy": "Hold"}));
    for at in 0..20 {
        cluster.workload(&format!("equal-{at:02}"), 9, &json!({})).wait(1);
    }
    cluster.workload("z", 10, &json!({})).settle();
    cluster.wait(5).settle().queue(&json!({"stopPolicy": "None"})).settle();
    seconds(&mut cluster, 14);
    let notes = explained(&mut cluster);
    assert!(notes.len() < 20 && notes.iter().any(|one| one.starts_with("z: ")), "{notes:?}");
}

#[test]
fn a_workload_of_which_a_reservation_was_withdrawn_is_explained() {
    let mut cluster = full();
    seconds(&mut cluster, 8);
    let mut other = cluster.workloads["train-77"].clone();
    cluster.delete("train-77");
    let orders = cluster.control.decide(cluster.now).orders;
    let tickets: Vec<Ticket> = orders.into_iter().map(|order| order.ticket).collect();
    let [ticket] = &tickets[..] else { panic!("a reservation: {tickets:?}") };
    assert_eq!(ticket.purpose.name(), "reserve");
    for _ in 0..10 {
        cluster.wait(1);
        let step = cluster.control.decide(cluster.now);
        assert!(step.events.is_empty() && step.orders.is_empty(), "the write is in flight");
    }
    cluster.control.answered(ticket, WriteOutcome::Stale, cluster.now);
    other["metadata"]["name"] = json!("train-78");
    other["metadata"]["uid"] = json!("uid-train-78");
    cluster.workload("train-78", 6, &other);
    cluster.workload("waits", 5, &json!({"spec": {"priority": 1}})).settle();
    assert!(cluster.condition("waits", "QuotaReserved").ends_with(" 5 more needed"));
    seconds(&mut cluster, 80);
    assert_eq!(explained(&mut cluster), [MISSING_5.replace("train-77", "train-78")]);
}

#[test]
fn a_clock_that_is_set_back_keeps_no_explanation_back() {
    let mut cluster = full();
    seconds(&mut cluster, 5);
    let back = jiff::SignedDuration::from_hours(-3);
    cluster.control.clock_jumped(back);
    cluster.now += back;
    seconds(&mut cluster, 3);
    assert_eq!(explained(&mut cluster), [""; 0]);
    seconds(&mut cluster, 5);
    assert_eq!(explained(&mut cluster), [MISSING_5]);
}
