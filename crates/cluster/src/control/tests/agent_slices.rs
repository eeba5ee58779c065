//! An elastic Job of a worker that grows: the agent admits the clone of its later slice beside the pods that run
//! (docs/reference/multikueue.md §2.13).

use super::{assigned_nodes::Worker, *};

const ELASTIC: &str = "kueue.x-k8s.io/elastic-job";
const CHAIN: &str = "kueue.x-k8s.io/workload-slice-name";

/// A worker of one node, on which the manager has started an elastic Job of two pods of one cpu each.
fn worker(cpus: i64) -> Worker {
    let mut worker = Worker::new(&[("n1", cpus)]);
    worker.dispatch("train", 2, 1, &json!({}));
    let (mut clone, mut job) = (worker.clones["train"].clone(), worker.jobs["train"].clone());
    clone["metadata"]["annotations"][ELASTIC] = json!("true");
    clone["metadata"]["annotations"][CHAIN] = json!("train");
    job["metadata"]["annotations"][ELASTIC] = json!("true");
    apply(&mut worker, "train", clone, job);
    worker.settle();
    assert!(worker.is_started("train"));
    worker
}

fn apply(worker: &mut Worker, name: &str, clone: Value, job: Value) {
    worker.store(name, clone, job);
    let job = Arc::new(batch_job().decode(worker.jobs[name].clone()).expect("a Job"));
    worker.control.observe(AgentInput::Job(batch_job(), Change::Apply(job)), NOW);
    apply_clone(worker, name);
}

fn apply_clone(worker: &mut Worker, name: &str) {
    let clone = shared(worker.clones[name].clone());
    worker.control.observe(AgentInput::Workload(Change::Apply(clone)), NOW);
}

/// The manager makes the clone of a later slice of so many pods. Returns whether the agent has admitted it.
fn extend(worker: &mut Worker, pods: i64) -> bool {
    let mut clone = worker.clones["train"].clone();
    clone["metadata"]["name"] = json!("later");
    clone["metadata"]["uid"] = json!("wl-later");
    worker.version += 1;
    clone["metadata"]["resourceVersion"] = json!(worker.version.to_string());
    clone["metadata"]["annotations"]["kueue.x-k8s.io/workload-slice-replacement-for"] =
        json!("ns/train");
    clone["spec"]["podSets"][0]["count"] = json!(pods);
    clone["status"] = json!({});
    worker.clones.insert("later".to_owned(), clone);
    apply_clone(worker, "later");
    worker.settle();
    is_admitted(worker, "later")
}

fn is_admitted(worker: &Worker, name: &str) -> bool {
    let conditions = worker.clones[name]["status"]["conditions"].as_array();
    let mut all = conditions.into_iter().flatten();
    all.any(|one| one["type"] == "Admitted" && one["status"] == "True")
}

fn is_finished(worker: &Worker, name: &str) -> bool {
    let conditions = worker.clones[name]["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Finished")
}

/// The manager gives the copy to the later slice, and removes the first clone.
fn take_over(worker: &mut Worker, pods: i64) {
    let (clone, mut job) = (worker.clones["train"].clone(), worker.jobs["train"].clone());
    job["metadata"]["annotations"]["kueue.x-k8s.io/prebuilt-workload-name"] = json!("later");
    job["spec"]["parallelism"] = json!(pods);
    apply(worker, "train", clone, job);
    worker.settle();
    let first = Key { namespace: Some("ns".into()), name: "train".into() };
    worker.control.observe(AgentInput::Workload(Change::Delete(first)), NOW);
    worker.clones.remove("train");
    worker.settle();
    assert!(worker.is_started("train"), "its pods run on");
}

#[test]
fn the_later_slice_needs_room_for_its_further_pods_only() {
    for bound in [false, true] {
        for (cpus, fits) in [(5, true), (4, false)] {
            let mut worker = worker(cpus);
            if bound {
                assert_eq!(worker.bind("train", &["n1"]), [("n1".to_owned(), 2)].into());
                worker.settle();
            }
            assert_eq!(extend(&mut worker, 5), fits, "{bound} {cpus}");
            assert!(is_admitted(&worker, "train") && worker.is_started("train"));
            assert!(!is_finished(&worker, "train"), "its manager decides about that");
        }
    }
}

#[test]
fn what_the_later_slice_was_admitted_for_is_free_for_no_other() {
    for (cpus, fits) in [(6, true), (5, false)] {
        let mut worker = worker(cpus);
        worker.bind("train", &["n1"]);
        assert!(extend(&mut worker, 5));
        worker.dispatch("other", 1, 1, &json!({}));
        worker.settle();
        assert_eq!(worker.is_started("other"), fits, "while both slices are there");
        let mut worker = self::worker(cpus);
        worker.bind("train", &["n1"]);
        assert!(extend(&mut worker, 5));
        take_over(&mut worker, 5);
        worker.dispatch("other", 1, 1, &json!({}));
        worker.settle();
        assert_eq!(worker.is_started("other"), fits, "after the first one");
    }
}

#[test]
fn pods_that_name_the_first_slice_count_for_the_later_one() {
    let mut worker = worker(6);
    worker.bind("train", &["n1"]);
    assert!(extend(&mut worker, 5));
    take_over(&mut worker, 5);
    // Further pods are of the same template, which names the first slice.
    worker.bind("train", &["n1"]);
    worker.settle();
    for (name, fits) in [("other", true), ("another", false)] {
        worker.dispatch(name, 1, 1, &json!({}));
        worker.settle();
        assert_eq!(worker.is_started(name), fits, "five of six cpus are in use");
    }
}

#[test]
fn a_withdrawn_later_slice_gives_its_further_room_back() {
    let mut worker = worker(5);
    worker.bind("train", &["n1"]);
    assert!(extend(&mut worker, 5));
    let later = Key { namespace: Some("ns".into()), name: "later".into() };
    worker.control.observe(AgentInput::Workload(Change::Delete(later)), NOW);
    worker.clones.remove("later");
    worker.settle();
    assert!(worker.is_started("train") && is_admitted(&worker, "train"));
    worker.dispatch("other", 3, 1, &json!({}));
    worker.settle();
    assert!(worker.is_started("other"));
}

#[test]
fn a_restarted_agent_counts_both_slices_as_before() {
    for (cpus, fits) in [(6, true), (5, false)] {
        let mut worker = worker(cpus);
        assert!(extend(&mut worker, 5));
        worker.control =
            AgentControl::new(AgentSettings::new(AgentPolicy::default(), &kinds().handled));
        worker.list(vec![]);
        worker.dispatch("other", 1, 1, &json!({}));
        worker.settle();
        assert_eq!(worker.is_started("other"), fits);
    }
}
