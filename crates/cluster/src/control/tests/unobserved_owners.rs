//! Children of objects that are not observed: of disabled integrations, external frameworks and ReplicaSets.

use super::{
    cluster::{json_merge, observe_queues},
    *,
};

pub(super) fn owner(kind: &str, name: &str) -> Value {
    let api_version = match kind {
        "Job" => "batch/v1",
        "JobSet" => "jobset.x-k8s.io/v1alpha2",
        "ReplicaSet" => "apps/v1",
        _ => "example.com/v1",
    };
    json!({
        "apiVersion": api_version, "kind": kind, "name": name, "uid": format!("{name}-uid"),
        "controller": true,
    })
}

pub(super) fn owned_job(name: &str, owner: Option<&Value>, fields: &Value) -> Arc<JobObject> {
    Arc::new(batch_job().decode(owned_object(name, owner, fields)).expect("a Job decodes"))
}

pub(super) fn owned_object(name: &str, owner: Option<&Value>, fields: &Value) -> Value {
    let mut object = json!(job());
    let metadata = json!({"name": name, "uid": format!("{name}-uid"), "ownerReferences": owner.map(|one| [one])});
    json_merge(&mut object, &json!({"metadata": metadata}));
    json_merge(&mut object, fields);
    object
}

/// A manager that handles Jobs, and knows the external framework `Recipe`.
pub(super) fn manager(without_queue_name: bool) -> ManagerControl {
    let mut file = Configuration::default();
    file.manage_jobs_without_queue_name = without_queue_name;
    file.integrations.frameworks = vec!["batch/job".to_owned()];
    file.integrations.external_frameworks = vec!["Recipe.v1.example.com".to_owned()];
    let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
    let mut control = leading(ManagerSettings::new(&file, &Gates::default(), &kinds, false));
    observe_queues(&mut control);
    control
}

pub(super) fn observe(control: &mut ManagerControl, job: Arc<JobObject>) {
    control.observe(ManagerInput::Job(batch_job(), Change::Apply(job)), NOW);
}

/// Decides, and answers the reads of owners with what `answer` says about their paths. Returns the purposes of the other writes,
/// with the names of their objects, and the paths that were read.
pub(super) fn decide(
    control: &mut ManagerControl,
    now: Timestamp,
    answer: impl Fn(&str) -> WriteOutcome,
) -> (Vec<String>, Vec<String>) {
    let (orders, reads) = orders(control, now, answer);
    (orders.iter().map(name_of).collect(), reads)
}

/// The purpose of a write, with the first word of the name of its object.
pub(super) fn name_of(order: &Order) -> String {
    let name = order.ticket.target.key.name.split('-').next().expect("a name");
    format!("{} {name}", order.ticket.purpose)
}

/// The same with the writes themselves.
pub(super) fn orders(
    control: &mut ManagerControl,
    now: Timestamp,
    answer: impl Fn(&str) -> WriteOutcome,
) -> (Vec<Order>, Vec<String>) {
    let (mut writes, mut reads) = (vec![], vec![]);
    for _ in 0..20 {
        let step = control.decide(now);
        let n_reads = reads.len();
        for order in step.orders {
            let subject = &order.ticket.target.subject;
            if order.ticket.purpose == Purpose::Ancestor {
                let path = order.write.request().uri().path().to_owned();
                control.answered(&order.ticket, answer(&path), now);
                reads.push(path);
            } else if !matches!(subject, Subject::ClusterQueue | Subject::LocalQueue) {
                writes.push(order);
            }
        }
        if reads.len() == n_reads {
            return (writes, reads);
        }
    }
    panic!("owners are read again and again: {reads:?}");
}

/// The answer about an object with a queue name, or without, and with an owner.
pub(super) fn shows(name: &str, queue: Option<&str>, owner: Option<Value>) -> WriteOutcome {
    let labels = queue.map_or(json!({}), |queue| json!({"kueue.x-k8s.io/queue-name": queue}));
    WriteOutcome::done(json!({"metadata": {
        "name": name, "namespace": "ns", "uid": format!("{name}-uid"), "resourceVersion": "5",
        "labels": labels, "ownerReferences": Vec::from_iter(owner),
    }}))
}

#[test]
fn the_search_for_an_ancestor_passes_through_owners_that_are_not_observed() {
    let running = json!({"spec": {"suspend": false}});
    for kind in ["JobSet", "Recipe", "ReplicaSet"] {
        for without_queue_name in [false, true] {
            let mut control = manager(without_queue_name);
            // The topmost ancestor names a queue. The child has the label that its owner copied.
            observe(&mut control, owned_job("top", None, &json!({})));
            let below_top = owned_job("child", Some(&owner(kind, "middle")), &running);
            observe(&mut control, below_top);
            let (writes, reads) =
                decide(&mut control, NOW, |_| shows("middle", None, Some(owner("Job", "top"))));
            assert_eq!(writes, ["workload-create job", "stop child"], "{kind}");
            assert_eq!(reads.len(), 1, "{reads:?}");
            assert!(reads[0].ends_with(&format!("/namespaces/ns/{}s/middle", kind.to_lowercase())));
        }
    }
}

#[test]
fn a_job_below_an_unmanaged_owner_has_a_workload_of_its_own() {
    for (kind, queue) in [("JobSet", Some("lq")), ("Recipe", None), ("ReplicaSet", Some("lq"))] {
        let mut control = manager(false);
        observe(&mut control, owned_job("child", Some(&owner(kind, "middle")), &json!({})));
        let (writes, _) = decide(&mut control, NOW, |_| shows("middle", queue, None));
        assert_eq!(writes, ["workload-create job"], "{kind}");
    }
}

#[test]
fn a_child_of_an_external_job_is_left_to_the_controller_of_that() {
    for (without_queue_name, queue) in [(false, Some("lq")), (true, None)] {
        for suspend in [false, true] {
            let mut control = manager(without_queue_name);
            let fields = json!({"spec": {"suspend": suspend}});
            observe(&mut control, owned_job("child", Some(&owner("Recipe", "middle")), &fields));
            let (writes, _) = decide(&mut control, NOW, |_| shows("middle", queue, None));
            assert_eq!(writes, [""; 0], "{queue:?} {suspend}");
        }
    }
}

#[test]
fn a_job_waits_until_its_owner_can_be_read() {
    let mut control = manager(false);
    observe(&mut control, owned_job("child", Some(&owner("JobSet", "middle")), &json!({})));
    let unknown = |_: &str| WriteOutcome::Unknown("no answer".to_owned());
    assert_eq!(decide(&mut control, NOW, unknown).0, [""; 0]);
    let later = NOW + std::time::Duration::from_secs(30);
    let (writes, reads) = decide(&mut control, later, |_| shows("middle", None, None));
    assert_eq!((writes.len(), reads.len()), (1, 1), "{writes:?}");
    // What was read is not read again.
    let sibling = owned_job("sibling", Some(&owner("JobSet", "middle")), &json!({}));
    observe(&mut control, sibling);
    let (writes, reads) = decide(&mut control, later, unknown);
    assert_eq!((writes.len(), reads.len()), (1, 0), "{writes:?} {reads:?}");
}

#[test]
fn a_job_whose_owner_was_replaced_under_its_name_gets_nothing() {
    let another = || {
        WriteOutcome::done(json!({"metadata": {"name": "middle", "namespace": "ns", "uid": "new"}}))
    };
    for answer in [WriteOutcome::Gone, another()] {
        let mut control = manager(true);
        observe(&mut control, owned_job("child", Some(&owner("JobSet", "middle")), &json!({})));
        assert_eq!(decide(&mut control, NOW, |_| answer.clone()).0, [""; 0]);
    }
    // The same of an observed kind.
    let mut control = manager(true);
    let replaced = json!({"metadata": {"uid": "new"}, "spec": {"parallelism": 1}});
    observe(&mut control, owned_job("top", None, &replaced));
    observe(&mut control, owned_job("child", Some(&owner("Job", "top")), &json!({})));
    assert_eq!(decide(&mut control, NOW, |_| WriteOutcome::Gone).0, ["workload-create job"]);
}

#[test]
fn the_ancestor_of_a_job_in_another_namespace_is_not_read() {
    let mut control = manager(false);
    let elsewhere = json!({"metadata": {"namespace": "kube-system"}});
    observe(&mut control, owned_job("child", Some(&owner("JobSet", "middle")), &elsewhere));
    assert_eq!(decide(&mut control, NOW, |_| WriteOutcome::Gone).1, [""; 0]);
}

#[test]
fn a_child_below_an_unobserved_owner_is_evaluated_with_its_ancestor() {
    let mut control = manager(false);
    let mut admitted = workload();
    admitted["metadata"]["ownerReferences"][0]["name"] = json!("top");
    admitted["metadata"]["ownerReferences"][0]["uid"] = json!("top-uid");
    let running = json!({"spec": {"suspend": false}});
    let show = |control: &mut ManagerControl, workload: Value| {
        control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
    };
    show(&mut control, admitted.clone());
    observe(&mut control, owned_job("top", None, &running));
    observe(&mut control, owned_job("child", Some(&owner("JobSet", "middle")), &running));
    let read = |_: &str| shows("middle", None, Some(owner("Job", "top")));
    let (writes, _) = decide(&mut control, NOW, read);
    assert!(!writes.contains(&"stop child".to_owned()), "{writes:?}");
    admitted["metadata"]["resourceVersion"] = json!("22");
    admitted["status"]["conditions"][1]["status"] = json!("False");
    show(&mut control, admitted);
    let (writes, _) = decide(&mut control, NOW, read);
    assert!(writes.contains(&"stop child".to_owned()), "{writes:?}");
}

fn refused(code: u16) -> WriteOutcome {
    WriteOutcome::Refused { code, reason: String::new(), message: String::new() }
}

fn seconds(seconds: i64) -> jiff::SignedDuration {
    jiff::SignedDuration::from_secs(seconds)
}

#[test]
fn an_owner_that_may_not_be_read_counts_as_one_of_an_unknown_kind() {
    // A 404 of the resource, and a 403.
    for code in [404, 403] {
        let mut control = manager(false);
        observe(&mut control, owned_job("child", Some(&owner("Recipe", "middle")), &json!({})));
        let (writes, reads) = decide(&mut control, NOW, |_| refused(code));
        assert_eq!((writes.len(), reads.len()), (1, 1), "{code} {writes:?}");
        assert_eq!(writes, ["workload-create job"], "{code}");
        let (_, reads) = decide(&mut control, NOW + seconds(599), |_| refused(code));
        assert_eq!(reads.len(), 0, "{code} {reads:?}");
        let (_, reads) = decide(&mut control, NOW + seconds(600), |_| refused(code));
        assert_eq!(reads.len(), 1, "{code} {reads:?}");
    }
}

#[test]
fn an_owner_that_was_not_found_is_read_again_when_the_read_is_old() {
    let mut control = manager(false);
    observe(&mut control, owned_job("child", Some(&owner("JobSet", "middle")), &json!({})));
    assert_eq!(decide(&mut control, NOW, |_| WriteOutcome::Gone).1.len(), 1);
    assert_eq!(decide(&mut control, NOW + seconds(599), |_| WriteOutcome::Gone).1.len(), 0);
    let found = |_: &str| shows("middle", None, None);
    let (writes, reads) = decide(&mut control, NOW + seconds(600), found);
    assert_eq!(reads.len(), 1);
    assert_eq!(writes, ["workload-create job"]);
}

#[test]
fn an_old_read_counts_until_the_next_one_is_answered() {
    let mut control = manager(false);
    observe(&mut control, owned_job("top", None, &json!({})));
    let below = |fields: &Value| owned_job("child", Some(&owner("JobSet", "middle")), fields);
    observe(&mut control, below(&json!({})));
    decide(&mut control, NOW, |_| shows("middle", None, Some(owner("Job", "top"))));
    let running = json!({"metadata": {"resourceVersion": "21"}, "spec": {"suspend": false}});
    observe(&mut control, below(&running));
    let unknown = |_: &str| WriteOutcome::Unknown("no answer".to_owned());
    let (writes, reads) = decide(&mut control, NOW + seconds(601), unknown);
    assert_eq!(writes, ["stop child"]);
    assert_eq!(reads.len(), 1);
}

#[test]
fn one_read_of_an_owner_is_in_flight_whatever_uid_is_searched_for() {
    let mut control = manager(false);
    let mut former = owner("JobSet", "middle");
    former["uid"] = json!("former-uid");
    observe(&mut control, owned_job("former", Some(&former), &json!({})));
    observe(&mut control, owned_job("present", Some(&owner("JobSet", "middle")), &json!({})));
    let is_read = |order: &&Order| order.ticket.purpose == Purpose::Ancestor;
    let step = control.decide(NOW);
    let read = step.orders.iter().find(is_read).expect("a read");
    assert_eq!(step.orders.iter().filter(is_read).count(), 1);
    control.answered(&read.ticket, shows("middle", None, None), NOW);
    let (writes, reads) = decide(&mut control, NOW, |_| shows("middle", None, None));
    // The answer shows the present owner, and that the former one is gone.
    assert_eq!((writes.len(), reads.len()), (1, 0), "{writes:?} {reads:?}");
}

#[test]
fn a_read_of_an_owner_is_as_old_after_a_jump_of_the_clock_as_before() {
    for hours in [3, -3] {
        let by = jiff::SignedDuration::from_hours(hours);
        let mut control = manager(false);
        let below = |version: &str| {
            let fields = json!({"metadata": {"resourceVersion": version}});
            owned_job("child", Some(&owner("JobSet", "middle")), &fields)
        };
        observe(&mut control, below("20"));
        let read = |control: &mut ManagerControl, now| {
            decide(control, now, |_| shows("middle", None, None)).1.len()
        };
        assert_eq!(read(&mut control, NOW), 1);
        control.clock_jumped(by);
        for (version, pause, reads) in [("21", 599, 0), ("22", 600, 1)] {
            let then = NOW + by + seconds(pause);
            control.observe(ManagerInput::Job(batch_job(), Change::Apply(below(version))), then);
            assert_eq!(read(&mut control, then), reads, "{hours} {pause}");
        }
    }
}
