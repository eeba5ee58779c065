//! Workload slices of an elastic Job.

use super::*;

/// An elastic Job of so many pods, suspended or running.
fn elastic(parallelism: i32, suspend: bool) -> Job {
    job(&json!({
        "metadata": {
            "generation": parallelism, "annotations": { "kueue.x-k8s.io/elastic-job": "true" },
        },
        "spec": { "parallelism": parallelism, "suspend": suspend },
    }))
}

/// A slice of so many pods with these conditions. Later ones are created later.
fn slice(name: &str, pods: i32, replaces: Option<&str>, conditions: &[&str]) -> Workload {
    let mut slice = construct_workload(
        &elastic(pods, true),
        WorkloadPriority::default(),
        &KeysToCopy::default(),
        GATES(),
    );
    slice.metadata.name = Some(name.to_owned());
    let created = format!("2026-01-01T00:00:{:02}Z", name.as_bytes()[0] - b'a');
    slice.metadata.creation_timestamp = serde_json::from_value(json!(created)).expect("a time");
    if let Some(old) = replaces {
        let annotations = slice.metadata.annotations.get_or_insert_default();
        annotations.insert(
            "kueue.x-k8s.io/workload-slice-replacement-for".to_owned(),
            format!("ns/{old}"),
        );
    }
    slice.status = workload(conditions).status;
    if let Some(admission) = &mut slice.status.admission {
        admission.pod_set_assignments[0].count = Some(pods);
    }
    slice
}

const HOLDS: &[&str] = &["QuotaReserved", "Admitted"];
const LEAVES: &[&str] = &["QuotaReserved", "Admitted", "Evicted"];
const OVER: &[&str] = &["QuotaReserved", "Admitted", "Finished"];

fn deleted(mut slice: Workload) -> Workload {
    slice.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-02T00:00:00Z")).expect("a time");
    slice
}

#[test]
fn a_job_that_grows_gets_a_replacement_and_one_that_shrinks_does_not() {
    let three = slice("a", 3, None, HOLDS);
    let running = |pods| elastic(pods, false);
    assert_eq!(steps(&running(3), &[&three]), [""; 0]);
    assert_eq!(steps(&running(2), &[&three]), ["resize to 2"]);
    assert_eq!(steps(&running(5), &[&three]), ["create slice"]);
    let pending = slice("b", 5, Some("a"), &[]);
    assert_eq!(steps(&running(5), &[&three, &pending]), [""; 0], "the job goes on meanwhile");
    for pods in [3, 1, 9] {
        let expected = format!("resize to {pods}");
        assert_eq!(steps(&running(pods), &[&three, &pending]), [expected], "in place");
    }
    let (old, five) = (slice("a", 3, None, OVER), slice("b", 5, Some("a"), HOLDS));
    assert_eq!(steps(&running(5), &[&old, &five]), [""; 0]);
    assert_eq!(steps(&running(6), &[&old, &five]), ["create slice"]);
    assert_eq!(steps(&running(4), &[&old, &five]), ["resize to 4"]);
    assert_eq!(steps(&running(5), &[&three, &five]), [""; 0], "the scheduler finishes the old one");
}

#[test]
fn a_replacement_names_the_old_slice_and_the_first_one() {
    let first = slice("a", 3, None, HOLDS);
    let second = ReplacedSlice::of(&first).replaced_by(slice("b", 5, None, &[]));
    let third = ReplacedSlice::of(&second).replaced_by(slice("c", 7, None, &[]));
    let annotation = |slice: &Workload, key: &str| {
        let annotations = slice.metadata.annotations.clone().unwrap_or_default();
        annotations.get(&format!("kueue.x-k8s.io/workload-slice-{key}")).cloned()
    };
    // The first slice of a real job has its own name.
    let chain = annotation(&first, "name").expect("a name");
    assert_eq!(annotation(&third, "name"), Some(chain));
    assert_eq!(annotation(&third, "replacement-for").as_deref(), Some("ns/b"));
    assert_eq!(annotation(&first, "replacement-for"), None);
}

#[test]
fn a_replacement_knows_the_cluster_that_its_job_last_ran_on() {
    let recorded = |name: &str, runs_on: Option<&str>, withdrawn_from: Option<&str>| {
        let mut old = slice(name, 3, None, HOLDS);
        old.status.cluster_name = runs_on.map(str::to_owned);
        let annotations = old.metadata.annotations.get_or_insert_default();
        let last = withdrawn_from.map(str::to_owned);
        annotations.extend(last.map(|last| ("sluice.dev/last-cluster".to_owned(), last)));
        let new = ReplacedSlice::of(&old).replaced_by(slice("b", 5, None, &[]));
        new.metadata.annotations.and_then(|all| all.get("sluice.dev/last-cluster").cloned())
    };
    assert_eq!(recorded("a", None, None), None);
    assert_eq!(recorded("a", None, Some("west")).as_deref(), Some("west"));
    assert_eq!(recorded("a", Some("east"), Some("west")).as_deref(), Some("east"));
}

#[test]
fn a_job_starts_with_the_slice_that_holds_quota_whatever_its_size() {
    let (three, pending) = (slice("a", 3, None, HOLDS), slice("b", 5, Some("a"), &[]));
    assert_eq!(steps(&elastic(5, true), &[&three]), ["start", "create slice"]);
    assert_eq!(steps(&elastic(5, true), &[&three, &pending]), ["start"]);
    let waiting = slice("b", 5, Some("a"), &["QuotaReserved"]);
    let old = slice("a", 3, None, OVER);
    assert_eq!(steps(&elastic(5, true), &[&old, &waiting]), [""; 0], "its checks are not ready");
    assert_eq!(steps(&elastic(5, false), &[&old, &waiting]), [""; 0], "pods of the old one go on");
}

#[test]
fn an_evicted_slice_ends_before_its_replacement_counts() {
    let (evicted, pending) = (slice("a", 3, None, LEAVES), slice("b", 5, Some("a"), &[]));
    let all = [&evicted, &pending];
    assert_eq!(steps(&elastic(5, false), &all), ["stop WorkloadEvicted"]);
    assert_eq!(steps(&elastic(5, true), &all), ["release"]);
    let gone = slice("a", 3, None, &["Evicted"]);
    assert_eq!(steps(&elastic(5, true), &[&gone, &pending]), ["finish OutOfSync"]);
    assert_eq!(steps(&elastic(4, true), &[&gone]), ["resize to 4"], "alone it is queued again");
    let held = slice("b", 5, Some("a"), LEAVES);
    let three = slice("a", 3, None, HOLDS);
    assert_eq!(steps(&elastic(5, false), &[&three, &held]), ["stop WorkloadEvicted"]);
}

#[test]
fn an_evicted_slice_is_taken_over_only_by_an_admitted_one() {
    let (evicted, waiting) =
        (slice("a", 3, None, LEAVES), slice("b", 5, Some("a"), &["QuotaReserved"]));
    assert_eq!(steps(&elastic(5, false), &[&evicted, &waiting]), ["stop WorkloadEvicted"]);
    assert_eq!(steps(&elastic(5, true), &[&evicted, &waiting]), ["release"]);
    let gone = slice("a", 3, None, &["Evicted"]);
    assert_eq!(steps(&elastic(5, true), &[&gone, &waiting]), ["finish OutOfSync"]);
    let admitted = slice("b", 5, Some("a"), HOLDS);
    assert_eq!(steps(&elastic(5, false), &[&evicted, &admitted]), [""; 0]);
    let three = slice("a", 3, None, HOLDS);
    assert_eq!(steps(&elastic(5, false), &[&three, &waiting]), [""; 0], "quota alone suffices");
}

#[test]
fn the_time_limit_of_a_slice_follows_the_job_until_its_admission() {
    let limit = |pods, label: Option<&str>| {
        let mut job = elastic(pods, false);
        let labels = job.metadata.labels.get_or_insert_default();
        let key = "kueue.x-k8s.io/max-exec-time-seconds".to_owned();
        labels.extend(label.map(|label| (key, label.to_owned())));
        job
    };
    let limits = |job: &Job, slices: &[&Workload]| {
        let found = reconcile(job, context(slices, &flavors())).into_iter();
        let of_step = |step| match step {
            ReconcileStep::ResizeSlice(slice) => Some(slice.spec.maximum_execution_time_seconds),
            _ => None,
        };
        found.filter_map(of_step).collect::<Vec<_>>()
    };
    let reserved = |name, replaces| slice(name, 3, replaces, &["QuotaReserved"]);
    let first = reserved("a", None);
    assert_eq!(limits(&limit(3, Some("60")), &[&first]), [Some(60)]);
    assert_eq!(limits(&limit(2, Some("60")), &[&first]), [Some(60)], "the size follows later");
    let mut limited = first;
    limited.spec.maximum_execution_time_seconds = Some(60);
    assert_eq!(limits(&limit(3, None), &[&limited]), [None], "cleared");
    assert_eq!(limits(&limit(3, Some("60")), &[&limited]), []);
    let admitted = slice("a", 3, None, HOLDS);
    assert_eq!(limits(&limit(3, Some("60")), &[&admitted]), [], "immutable then");
    let replacement = on_worker(reserved("b", Some("a")));
    let old = on_worker(slice("a", 2, None, HOLDS));
    assert_eq!(limits(&limit(3, Some("60")), &[&old, &replacement]), [Some(60)]);
    let off = slice("b", 3, Some("a"), &["Evicted"]);
    assert_eq!(limits(&limit(3, Some("60")), &[&old, &off]), [Some(60)]);
}

#[test]
fn a_deactivated_replacement_stays_until_the_job_has_another_size() {
    let (three, off) = (slice("a", 3, None, HOLDS), slice("b", 5, Some("a"), &["Evicted"]));
    assert_eq!(steps(&elastic(5, false), &[&three, &off]), [""; 0]);
    assert_eq!(steps(&elastic(3, false), &[&three, &off]), ["finish OutOfSync"]);
    let over = slice("b", 5, Some("a"), &["Finished"]);
    assert_eq!(steps(&elastic(6, false), &[&three, &over]), ["create slice"]);
}

#[test]
fn deleted_slices_go_after_their_pods() {
    let holder = deleted(slice("a", 3, None, HOLDS));
    let pending = slice("b", 5, Some("a"), &[]);
    assert_eq!(steps(&elastic(5, false), &[&holder, &pending]), ["stop WorkloadDeleted"]);
    let mut ending = elastic(5, true);
    ending.status.active = Some(1);
    assert_eq!(steps(&ending, &[&holder, &pending]), [""; 0]);
    assert_eq!(steps(&elastic(5, true), &[&holder, &pending]), ["unfinalize"]);
    assert_eq!(steps(&elastic(5, true), &[&pending]), [""; 0], "which waits alone now");
    let three = slice("a", 3, None, HOLDS);
    let leaving = deleted(pending);
    assert_eq!(steps(&elastic(5, false), &[&three, &leaving]), ["unfinalize"]);
    let expired = deleted(slice("a", 3, None, OVER));
    let five = slice("b", 5, Some("a"), HOLDS);
    assert_eq!(steps(&elastic(5, false), &[&expired, &five]), ["unfinalize"]);
}

#[test]
fn of_many_slices_one_holder_and_its_replacement_stay() {
    let a = slice("a", 2, None, HOLDS);
    let (b, c) = (slice("b", 4, Some("a"), &[]), slice("c", 5, Some("a"), &[]));
    let d = slice("d", 6, None, &[]);
    let all = [&a, &b, &c, &d];
    let expected = ["finish OutOfSync", "finish OutOfSync"];
    assert_eq!(steps(&elastic(5, false), &all), expected, "the latest replacement stays");
    let pending = [&slice("a", 2, None, &[]), &c];
    assert_eq!(steps(&elastic(5, true), &pending), ["finish OutOfSync"], "one waits");
    let forked = [&a, &slice("d", 5, None, HOLDS)];
    assert_eq!(steps(&elastic(5, false), &forked), ["finish OutOfSync"], "one holds quota");
}

#[test]
fn all_slices_end_with_their_job() {
    let mut done = elastic(5, false);
    let complete = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    done.status = serde_json::from_value(complete).expect("decodes");
    let (old, five) = (slice("a", 3, None, OVER), slice("b", 5, Some("a"), HOLDS));
    let pending = slice("c", 7, Some("b"), &[]);
    assert_eq!(
        steps(&done, &[&old, &five, &pending]),
        ["finish Succeeded", "finish Succeeded", "unfinalize"]
    );
    let over = slice("b", 5, Some("a"), OVER);
    assert_eq!(steps(&done, &[&old, &over]), ["unfinalize", "unfinalize"]);
    let mut unstartable = over;
    unstartable.status.conditions.last_mut().expect("conditions").reason = "FailedToStart".into();
    assert_eq!(steps(&elastic(5, true), &[&unstartable]), ["unfinalize"], "no further attempt");
}

#[test]
fn without_slices_an_elastic_job_is_recreated() {
    assert_eq!(steps(&elastic(5, false), &[]), ["stop NoMatchingWorkload"], "nothing holds quota");
    assert_eq!(steps(&elastic(5, true), &[]), ["create"]);
}

#[test]
fn pods_that_a_larger_job_does_not_need_are_those_beyond_its_slice() {
    // Four pods are still needed of nine, so three of a slice of three.
    let nine = job(&json!({
        "metadata": { "annotations": { "kueue.x-k8s.io/elastic-job": "true" } },
        "spec": { "parallelism": 9, "completions": 10, "suspend": false },
        "status": { "succeeded": 6 },
    }));
    let (three, pending) = (slice("a", 3, None, HOLDS), slice("b", 9, Some("a"), &[]));
    assert_eq!(steps(&nine, &[&three, &pending]), [""; 0]);
    let whole = slice("b", 9, Some("a"), HOLDS);
    assert_eq!(steps(&nine, &[&whole]), ["reclaim 5"]);
}

#[test]
fn reclaimable_pods_follow_a_job_that_shrinks_with_quota() {
    let shrunk = |(from, to): (i32, i32), done: i32, known: i32, completions: i32| {
        let mut slice = slice("a", to, None, HOLDS);
        let admission = slice.status.admission.as_mut().expect("it has quota");
        admission.pod_set_assignments[0].count = Some(from);
        slice.status.reclaimable_pods =
            vec![ReclaimablePod { name: "main".to_owned(), count: known }];
        let job = job(&json!({
            "metadata": { "annotations": { "kueue.x-k8s.io/elastic-job": "true" } },
            "spec": { "parallelism": to, "completions": completions, "suspend": false },
            "status": { "succeeded": done },
        }));
        (steps(&job, &[&slice]), slice, job)
    };
    assert_eq!(shrunk((5, 4), 4, 4, 5).0, ["reclaim 3"]);
    let (steps, mut kept, job) = shrunk((5, 2), 1, 1, 3);
    assert_eq!(steps, ["reclaim 0"], "the two pods are needed");
    // Without a smaller size the webhook refuses fewer.
    let mut whole = kept.clone();
    let admission = whole.status.admission.as_mut().expect("it has quota");
    admission.pod_set_assignments[0].count = Some(2);
    assert_eq!(super::steps(&job, &[&whole]), [""; 0]);
    kept.metadata.annotations = None;
    assert_eq!(super::steps(&job, &[&kept]), [""; 0]);
}

/// A slice with a worker that runs it.
fn on_worker(mut slice: Workload) -> Workload {
    slice.status.cluster_name = Some("east".to_owned());
    slice
}

/// A Job that is dispatched to a worker.
fn dispatched(spec: &Value, suspend: bool) -> Job {
    let mut job = elastic(3, suspend);
    job.spec.managed_by = Some("kueue.x-k8s.io/multikueue".to_owned());
    let mut object = serde_json::to_value(&job).expect("encodes");
    merge(&mut object["spec"], spec);
    serde_json::from_value(object).expect("a Job decodes")
}

#[test]
fn a_dispatched_job_shrinks_in_place_and_gets_a_replacement_to_grow() {
    let three = on_worker(slice("a", 3, None, HOLDS));
    let running = |pods: i32| dispatched(&json!({ "parallelism": pods }), false);
    assert_eq!(steps(&running(3), &[&three]), [""; 0]);
    assert_eq!(steps(&running(2), &[&three]), ["resize to 2"]);
    assert_eq!(steps(&running(5), &[&three]), ["create slice"]);
    let mut once = three.clone();
    let annotations = once.metadata.annotations.get_or_insert_default();
    annotations.insert("sluice.dev/execution".to_owned(), "ExactlyOnce".to_owned());
    assert_eq!(steps(&running(5), &[&once]), ["refuse SizeKept"], "it goes on as it is");
    assert_eq!(steps(&running(2), &[&once]), ["resize to 2"]);
    let mut two = slice("a", 2, None, HOLDS);
    if let Some(admission) = &mut two.status.admission {
        admission.pod_set_assignments[0].count = Some(3);
    }
    assert_eq!(steps(&running(2), &[&two]), [""; 0], "its admission stays");
    assert_eq!(steps(&running(1), &[&two]), ["resize to 1"]);
    let waiting = dispatched(&json!({ "parallelism": 5 }), true);
    assert_eq!(steps(&waiting, &[&three]), ["delete"], "nothing runs yet");
    let edited = json!({ "template": { "spec": { "containers": [{ "name": "other" }] } } });
    let edited = dispatched(&edited, true);
    assert_eq!(steps(&edited, &[&slice("a", 3, None, &["QuotaReserved"])]), ["delete"]);
    assert_eq!(steps(&dispatched(&json!({}), true), &[&three]), ["start"]);
    let evicted = slice("a", 3, None, LEAVES);
    assert_eq!(steps(&running(5), &[&evicted]), ["stop WorkloadEvicted"]);
    let queued = slice("a", 3, None, &["Evicted"]);
    assert_eq!(steps(&waiting, &[&queued]), ["resize to 5"]);
}

#[test]
fn a_dispatched_job_of_more_work_is_recreated() {
    let three = slice("a", 3, None, HOLDS);
    let indexed = |pods: i32, completions: i32| {
        let spec = json!({
            "parallelism": pods, "completions": completions, "completionMode": "Indexed",
        });
        dispatched(&spec, false)
    };
    assert_eq!(steps(&indexed(2, 2), &[&three]), ["resize to 2"]);
    assert_eq!(steps(&indexed(5, 5), &[&three]), ["stop NoMatchingWorkload", "delete"]);
    let three = on_worker(three);
    assert_eq!(steps(&indexed(5, 9), &[&three]), ["create slice"]);
}

#[test]
fn a_replacement_on_a_worker_takes_over_when_it_is_admitted() {
    let three = on_worker(slice("a", 3, None, HOLDS));
    let reserved = slice("b", 5, Some("a"), &["QuotaReserved"]);
    let running = |pods: i32| dispatched(&json!({ "parallelism": pods }), false);
    for pods in [5, 9] {
        assert_eq!(steps(&running(pods), &[&three, &reserved]), [""; 0], "one growth at a time");
    }
    for pods in [4, 2] {
        let expected = format!("resize to {pods}");
        assert_eq!(steps(&running(pods), &[&three, &reserved]), [expected], "its clone follows");
    }
    let five = on_worker(slice("b", 5, Some("a"), HOLDS));
    assert_eq!(steps(&running(5), &[&three, &five]), [""; 0], "the old one is being finished");
    let over = on_worker(slice("a", 3, None, OVER));
    assert_eq!(steps(&running(9), &[&over, &five]), ["create slice"], "the latest size wins");
}

#[test]
fn a_replacement_that_no_worker_takes_leaves_the_job_as_it_runs() {
    let three = on_worker(slice("a", 3, None, HOLDS));
    let running = |pods: i32| dispatched(&json!({ "parallelism": pods }), false);
    for conditions in [&["QuotaReserved", "Evicted"], LEAVES] {
        let evicted = slice("b", 5, Some("a"), conditions);
        assert_eq!(steps(&running(5), &[&three, &evicted]), ["release"]);
    }
    let pending = slice("b", 5, Some("a"), &[]);
    assert_eq!(steps(&running(5), &[&three, &pending]), [""; 0]);
    assert_eq!(steps(&running(9), &[&three, &pending]), ["resize to 9"]);
    assert_eq!(steps(&running(4), &[&three, &pending]), ["resize to 4"]);
    for pods in [3, 2] {
        let steps = steps(&running(pods), &[&three, &pending]);
        assert_eq!(
            steps,
            ["finish OutOfSync"],
            "it is not needed, and the holder shrinks after it"
        );
    }
}

#[test]
fn a_replacement_follows_the_priority_class_and_the_admission_gates_of_its_job() {
    let three = {
        let mut three = on_worker(slice("a", 3, None, HOLDS));
        follow(&mut three, "high");
        three
    };
    let of_class = |conditions: &[&str]| {
        let mut pending = slice("b", 5, Some("a"), conditions);
        follow(&mut pending, "low");
        pending.metadata.annotations.get_or_insert_default().remove(GATED);
        pending
    };
    let running = |pods: i32| {
        let mut job = dispatched(&json!({ "parallelism": pods }), false);
        let labels = job.metadata.labels.get_or_insert_default();
        labels.insert("kueue.x-k8s.io/priority-class".to_owned(), "high".to_owned());
        let annotations = job.metadata.annotations.get_or_insert_default();
        annotations.insert(GATED.to_owned(), "a.b/c".to_owned());
        job
    };
    let keys = ["gates Some(\"a.b/c\")", "priority"];
    let and = |step: &str| [keys[0].to_owned(), keys[1].to_owned(), step.to_owned()];
    for conditions in [&[][..], &["QuotaReserved"], &["Evicted"]] {
        let pending = of_class(conditions);
        assert_eq!(steps(&running(5), &[&three, &pending]), keys, "{conditions:?}");
    }
    let leaving = of_class(&["QuotaReserved", "Evicted"]);
    assert_eq!(steps(&running(5), &[&three, &leaving]), and("release"));
    let reserved = of_class(&["QuotaReserved"]);
    assert_eq!(steps(&running(4), &[&three, &reserved]), and("resize to 4"));
    for conditions in [&[][..], &["Evicted"]] {
        let unneeded = of_class(conditions);
        assert_eq!(steps(&running(3), &[&three, &unneeded]), ["finish OutOfSync"]);
    }
}

const GATED: &str = "kueue.x-k8s.io/admission-gated-by";

/// Gives a slice this class, and the gate of the job.
fn follow(slice: &mut Workload, class: &str) {
    let class = json!({ "kind": "WorkloadPriorityClass", "name": class, "group": "" });
    slice.spec.priority_class_ref = serde_json::from_value(class).expect("a class");
    let annotations = slice.metadata.annotations.get_or_insert_default();
    annotations.insert(GATED.to_owned(), "a.b/c".to_owned());
}

#[test]
fn a_replacement_waits_until_an_evicted_slice_has_left_its_worker() {
    let leaving = on_worker(slice("a", 3, None, LEAVES));
    let reserved = slice("b", 5, Some("a"), &["QuotaReserved"]);
    let job = |suspend: bool| dispatched(&json!({ "parallelism": 5 }), suspend);
    assert_eq!(steps(&job(false), &[&leaving, &reserved]), ["stop WorkloadEvicted"]);
    assert_eq!(steps(&job(true), &[&leaving, &reserved]), ["release"]);
    let gone = slice("a", 3, None, &["Evicted"]);
    assert_eq!(steps(&job(true), &[&gone, &reserved]), ["finish OutOfSync"]);
    assert_eq!(steps(&job(true), &[&reserved]), [""; 0], "its worker has not admitted it");
}

#[test]
fn a_dispatched_job_stops_without_admission() {
    let reserved = slice("a", 3, None, &["QuotaReserved"]);
    assert_eq!(steps(&dispatched(&json!({}), false), &[&reserved]), ["stop NotAdmitted"]);
    assert_eq!(steps(&elastic(3, false), &[&reserved]), [""; 0], "here a gate holds its pods");
}

#[test]
fn a_slice_is_ready_with_its_own_pods_while_a_larger_one_waits() {
    let nine = job(&json!({
        "metadata": { "annotations": { "kueue.x-k8s.io/elastic-job": "true" } },
        "spec": { "parallelism": 9, "completions": 100, "suspend": false },
        "status": { "active": 3, "ready": 3 },
    }));
    let ready = |pods| pods_ready(&nine, &slice("a", pods, None, HOLDS), GATES());
    assert_eq!((ready(3), ready(4), ready(9)), (Some(true), Some(false), Some(false)));
    let mut three = nine.clone();
    three.spec.parallelism = Some(3);
    let five = slice("a", 5, None, HOLDS);
    assert_eq!(pods_ready(&three, &five, GATES()), Some(true), "its slice has not shrunk yet");
    let off = JobGates { elastic_jobs: false, ..GATES() };
    assert_eq!(pods_ready(&nine, &slice("a", 3, None, HOLDS), off), Some(false));
}
