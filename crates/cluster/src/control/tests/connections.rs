//! Which connections to workers are wanted, and which of them may use their cluster.

use std::{sync::Arc, time::Duration};

use super::{
    dispatched::{connect, dispatching, east, hub_job, orders},
    *,
};

/// Twice the default of `workerLostTimeout`.
const KEEP_FOR: Duration = Duration::from_secs(2 * 15 * 60);

fn control() -> ManagerControl {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
    connect(&mut control, vec![], vec![]);
    control
}

fn later(pause: Duration) -> Timestamp {
    outbox::after(NOW, pause)
}

/// What is wanted of the connection to a worker.
fn plan(control: &mut ManagerControl, name: &str, now: Timestamp) -> Option<ConnectionPlan> {
    let plans = control.decide(now).connections.expect("everything was listed");
    plans.get(name).cloned()
}

/// What is wanted, as a word.
fn wanted(control: &mut ManagerControl, now: Timestamp) -> &'static str {
    match plan(control, "east", now) {
        Some(ConnectionPlan { target: Some(_), .. }) => "connect",
        Some(ConnectionPlan { target: None, .. }) => "keep",
        None => "end",
    }
}

fn cluster(name: &str, version: &str, metadata: &Value) -> ManagerInput {
    let kube_config = json!({"locationType": "Secret", "location": name});
    let mut object = json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": version},
        "spec": {"clusterSource": {"kubeConfig": kube_config}},
    });
    json_patch_merge(&mut object["metadata"], metadata);
    ManagerInput::MultiKueueCluster(Change::Apply(shared(object)))
}

fn json_patch_merge(object: &mut Value, fields: &Value) {
    for (key, value) in fields.as_object().expect("an object") {
        object[key] = value.clone();
    }
}

fn gone(name: &str) -> ManagerInput {
    let key = Key { namespace: None, name: name.into() };
    ManagerInput::MultiKueueCluster(Change::Delete(key))
}

/// A worker with a connection that is kept: its watches have not shown that it has nothing.
fn unclean(control: &mut ManagerControl) {
    control.observe(dispatched::linked(false), NOW);
}

#[test]
fn nothing_is_planned_before_everything_was_listed() {
    let mut control = leading(settings());
    assert_eq!(control.decide(NOW).connections, None);
}

#[test]
fn plans_are_made_once_until_a_registration_changes() {
    let mut control = control();
    control.observe(cluster("west", "30", &json!({})), NOW);
    let mut plans = || control.decide(NOW).connections.expect("everything was listed");
    let (first, second) = (plans(), plans());
    assert!(Arc::ptr_eq(&first, &second), "a decision that concerns no worker makes none");
    control.observe(cluster("west", "31", &json!({"uid": "again"})), NOW);
    let third = control.decide(NOW).connections.expect("everything was listed");
    let target = third["west"].target.clone().expect("a target");
    assert_eq!(target.uid.as_deref(), Some("again"));
}

#[test]
fn a_registered_worker_is_connected_as_its_object_says() {
    let mut control = control();
    control.observe(cluster("west", "30", &json!({})), NOW);
    let plan = plan(&mut control, "west", NOW).expect("a plan");
    let target = plan.target.expect("a target");
    assert_eq!(target.uid.as_deref(), Some("west"));
    assert_eq!(target.source.kube_config.expect("a kubeconfig").location, "west");
    assert_eq!(plan.claim, None);
}

#[test]
fn a_connection_outlives_its_cluster_object_for_a_limited_time() {
    let mut control = control();
    unclean(&mut control);
    assert_eq!(wanted(&mut control, NOW), "connect");
    control.observe(gone("east"), NOW);
    let wake = control.decide(NOW).wake.expect("the end of the connection");
    assert!(wake <= later(KEEP_FOR), "{wake}");
    assert_eq!(wanted(&mut control, later(KEEP_FOR - Duration::from_millis(1))), "keep");
    assert_eq!(wanted(&mut control, later(KEEP_FOR)), "end");
}

#[test]
fn an_unregistered_worker_stays_connected_while_it_runs_work_of_ours() {
    let mut control = dispatching(&hub_job("20", false, &json!({})), &[dispatched::hub_workload()]);
    let (clone, copy) = dispatched::copies();
    connect(&mut control, vec![clone], vec![copy]);
    control.observe(gone("east"), NOW);
    assert_eq!(wanted(&mut control, later(5 * KEEP_FOR)), "keep", "it runs");
    let mut finished = dispatched::hub_workload();
    finished["metadata"]["resourceVersion"] = json!("40");
    let condition = json!({"type": "Finished", "status": "True", "reason": "", "message": ""});
    finished["status"]["conditions"].as_array_mut().expect("a list").push(condition);
    control.observe(ManagerInput::Workload(Change::Apply(shared(finished))), later(5 * KEEP_FOR));
    let wake = control.decide(later(5 * KEEP_FOR)).wake.expect("the end of the connection");
    assert!(wake <= later(6 * KEEP_FOR), "{wake}");
    assert_eq!(wanted(&mut control, later(6 * KEEP_FOR - Duration::from_millis(1))), "keep");
    assert_eq!(wanted(&mut control, later(6 * KEEP_FOR)), "end");
}

#[test]
fn a_connection_to_a_clean_worker_ends_with_its_cluster_object() {
    let mut control = control();
    assert_eq!(wanted(&mut control, NOW), "connect", "the object exists");
    control.observe(gone("east"), NOW);
    assert_eq!(wanted(&mut control, NOW), "end");
    control.observe(cluster("east", "31", &json!({})), NOW);
    assert_eq!(wanted(&mut control, NOW), "connect", "the object exists again");
}

#[test]
fn a_cluster_object_that_is_being_deleted_counts_as_deleted() {
    let mut control = control();
    unclean(&mut control);
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    control.observe(cluster("east", "31", &deleted), NOW);
    assert_eq!(wanted(&mut control, NOW), "keep");
    control.observe(gone("east"), later(KEEP_FOR / 2));
    assert_eq!(wanted(&mut control, later(KEEP_FOR)), "end", "the time is not counted again");
}

#[test]
fn a_connection_that_ended_is_not_wanted_any_more() {
    let mut control = control();
    unclean(&mut control);
    control.observe(gone("east"), NOW);
    control.observe(east(WorkerInput::GivenUp), NOW);
    assert_eq!(wanted(&mut control, NOW), "end");
}

/// Reports the uid of the cluster that a worker leads to.
fn identity(name: &str, request: u64, uid: &str) -> ManagerInput {
    ManagerInput::Worker(name.into(), WorkerInput::Identity { request, uid: uid.into() })
}

/// The answer to the last reported identity.
fn claim(control: &mut ManagerControl, name: &str) -> Option<(u64, ClaimResult)> {
    let answer = plan(control, name, NOW)?.claim?;
    Some((answer.request, answer.result))
}

/// Decides, and answers the write that notes an identity, if there is one. Returns its body.
fn note(control: &mut ManagerControl, answer: impl Fn(&Value) -> WriteOutcome) -> Option<Value> {
    let order = control.decide(NOW).orders.into_iter();
    let mut notes = order.filter(|order| order.ticket.purpose == Purpose::ClusterUid);
    let order = notes.next()?;
    let body = serde_json::from_slice(order.write.request().body()).expect("JSON");
    control.answered(&order.ticket, answer(&body), NOW);
    Some(body)
}

fn done(body: &Value) -> WriteOutcome {
    let mut object = body.clone();
    let version = object["metadata"]["resourceVersion"].as_str().and_then(|one| one.parse().ok());
    object["metadata"]["resourceVersion"] = json!((version.unwrap_or(0_u64) + 1).to_string());
    WriteOutcome::done(object)
}

#[test]
fn a_cluster_is_used_only_after_its_identity_was_noted() {
    let mut control = control();
    control.observe(cluster("west", "30", &json!({})), NOW);
    control.observe(identity("west", 1, "there"), NOW);
    let step = control.decide(NOW);
    control.observe(identity("west", 2, "there"), NOW);
    assert_eq!(claim(&mut control, "west"), None, "the note has no answer");
    let noted = json!({"metadata": {"annotations": {"sluice.dev/cluster-uid": "there"}}});
    dispatched::done(&mut control, &step, "cluster-uid", noted, NOW);
    assert_eq!(claim(&mut control, "west"), Some((2, ClaimResult::Granted)));
    control.observe(identity("west", 3, "there"), NOW);
    assert_eq!(claim(&mut control, "west"), Some((3, ClaimResult::Granted)), "it is noted");
}

#[test]
fn the_note_names_the_version_that_it_is_based_on() {
    let mut control = control();
    control.observe(cluster("west", "30", &json!({})), NOW);
    control.observe(identity("west", 1, "there"), NOW);
    let body = note(&mut control, done).expect("a note");
    let annotations = json!({"sluice.dev/cluster-uid": "there"});
    let expected = json!({"metadata": {"annotations": annotations, "resourceVersion": "30"}});
    assert_eq!(body, expected);
    assert_eq!(claim(&mut control, "west"), Some((1, ClaimResult::Granted)));
    assert_eq!(note(&mut control, done), None, "it is noted once");
}

#[test]
fn a_cluster_belongs_to_one_of_two_cluster_objects() {
    let mut control = control();
    for name in ["west", "north"] {
        control.observe(cluster(name, "30", &json!({})), NOW);
    }
    control.observe(identity("west", 1, "there"), NOW);
    note(&mut control, done).expect("a note");
    control.observe(identity("north", 2, "there"), NOW);
    let taken = ClaimResult::TakenBy("west".into());
    assert_eq!(claim(&mut control, "north"), Some((2, taken.clone())));
    control.observe(gone("west"), NOW);
    control.decide(NOW);
    control.observe(identity("north", 3, "there"), NOW);
    assert_eq!(claim(&mut control, "north"), Some((3, taken)), "its connection may be kept");
    let ended = ManagerInput::Worker("west".into(), WorkerInput::GivenUp);
    control.observe(ended, NOW);
    control.decide(NOW);
    control.observe(identity("north", 4, "there"), NOW);
    note(&mut control, done).expect("a note");
    assert_eq!(claim(&mut control, "north"), Some((4, ClaimResult::Granted)));
}

#[test]
fn another_cluster_behind_a_registration_is_refused_while_work_is_recorded_there() {
    let waiting = hub_job("20", false, &dispatched::running());
    let mut control = dispatching(&waiting, &[dispatched::hub_workload()]);
    let noted = |uid: &str| json!({"annotations": {"sluice.dev/cluster-uid": uid}});
    control.observe(cluster("east", "30", &noted("there")), NOW);
    control.observe(identity("east", 1, "elsewhere"), NOW);
    let changed = ClaimResult::Changed { known: "there".into(), found: "elsewhere".into() };
    assert_eq!(claim(&mut control, "east"), Some((1, changed)));
    control.observe(cluster("east", "31", &noted("elsewhere")), NOW);
    control.observe(identity("east", 2, "elsewhere"), NOW);
    assert_eq!(claim(&mut control, "east"), Some((2, ClaimResult::Granted)), "confirmed");
}

#[test]
fn a_note_that_is_refused_withdraws_the_claim() {
    let mut control = control();
    for name in ["west", "north"] {
        control.observe(cluster(name, "30", &json!({})), NOW);
    }
    control.observe(identity("west", 1, "there"), NOW);
    note(&mut control, |_| WriteOutcome::Unknown("no answer".to_owned())).expect("a note");
    let refused = ClaimResult::Refused("no answer".to_owned());
    assert_eq!(claim(&mut control, "west"), Some((1, refused)));
    control.observe(identity("north", 2, "there"), NOW);
    note(&mut control, done).expect("a note");
    assert_eq!(claim(&mut control, "north"), Some((2, ClaimResult::Granted)));
}

#[test]
fn a_note_that_meets_a_newer_version_is_written_again() {
    let mut control = control();
    control.observe(cluster("west", "30", &json!({})), NOW);
    control.observe(identity("west", 1, "there"), NOW);
    note(&mut control, |_| WriteOutcome::Stale).expect("a note");
    assert_eq!(claim(&mut control, "west"), None);
    control.observe(cluster("west", "31", &json!({})), NOW);
    let body = note(&mut control, done).expect("a note");
    assert_eq!(body["metadata"]["resourceVersion"], "31");
    assert_eq!(claim(&mut control, "west"), Some((1, ClaimResult::Granted)));
}

#[test]
fn a_late_note_says_nothing_about_another_cluster() {
    let mut control = control();
    control.observe(cluster("west", "30", &json!({})), NOW);
    control.observe(identity("west", 1, "there"), NOW);
    let step = control.decide(NOW);
    assert!(orders(&step).iter().any(|order| order.contains("cluster-uid")), "{:?}", orders(&step));
    control.observe(identity("west", 2, "elsewhere"), NOW);
    let notes = step.orders.into_iter();
    let mut notes = notes.filter(|order| order.ticket.purpose == Purpose::ClusterUid);
    let order = notes.next().expect("a note");
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    control.answered(&order.ticket, done(&body), NOW);
    let body = note(&mut control, done).expect("another note");
    assert_eq!(body["metadata"]["annotations"]["sluice.dev/cluster-uid"], "elsewhere");
    assert_eq!(claim(&mut control, "west"), Some((2, ClaimResult::Granted)));
}

/// Decides, and answers the writes of the condition of `east`. Returns status and message of each.
fn conditions(control: &mut ManagerControl, now: Timestamp) -> Vec<(String, String)> {
    let orders = control.decide(now).orders.into_iter();
    let written = orders.filter(|order| order.ticket.target.subject == Subject::MultiKueueCluster);
    let condition = |order: Order| {
        let mut object: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
        object["metadata"]["name"] = json!("east");
        object["metadata"]["resourceVersion"] = json!(now.as_second().to_string());
        object["spec"] = json!({});
        let active = object["status"]["conditions"][0].clone();
        control.answered(&order.ticket, WriteOutcome::done(object), now);
        let text = |field: &str| active[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("message"))
    };
    written.collect::<Vec<_>>().into_iter().map(condition).collect()
}

#[test]
fn a_worker_that_answers_and_never_completes_its_lists_is_reported_and_lost_like_any_other() {
    let job = hub_job("20", false, &dispatched::running());
    let mut workload = dispatched::hub_workload();
    workload["status"]["conditions"][2]["status"] = json!("True");
    let mut control = dispatching(&job, &[workload]);
    let (clone, copy) = dispatched::copies();
    connect(&mut control, vec![clone.clone()], vec![copy.clone()]);
    let condition = |status: &str, message: &str| vec![(status.to_owned(), message.to_owned())];
    assert_eq!(conditions(&mut control, NOW), condition("True", ""));
    control.observe(dispatched::linked(false), NOW);
    assert_eq!(conditions(&mut control, NOW), condition("False", ""));
    let minute = later(Duration::from_secs(60));
    control.observe(dispatched::linked(true), minute);
    control.observe(east(WorkerInput::Workload(list(vec![clone]))), minute);
    assert_eq!(conditions(&mut control, minute), condition("True", ""));

    let overdue = outbox::after(minute, Duration::from_secs(30));
    let message = "it answers, but did not complete its lists within 30s: Job.v1.batch";
    assert_eq!(conditions(&mut control, overdue), condition("False", message));
    let lost = later(Duration::from_secs(15 * 60));
    let before = lost - jiff::SignedDuration::from_millis(1);
    assert_eq!(orders(&control.decide(before)), [""; 0]);
    assert_eq!(orders(&control.decide(lost)), ["hub retry"]);

    control.observe(east(WorkerInput::Job(batch_job(), jobs(vec![copy]))), lost);
    assert_eq!(conditions(&mut control, lost), condition("True", ""));
}
