//! Quota that follows workers (docs/reference/multikueue.md §2.14).

use jiff::ToSpan;

use super::{
    dispatched::{dispatching_lists, done, hub_job, name, orders},
    *,
};

const API: &str = "kueue.x-k8s.io/v1beta2";

/// A manager of the workers `east` and `west` with this `quotaManagement`. `holds` says whether a Workload holds quota on `east`.
fn manager(management: &str, holds: bool) -> ManagerControl {
    let mut file = Configuration::without_file(None).expect("defaults");
    CAPACITY.clone_into(&mut file.multi_kueue.dispatcher_name);
    let gates = Gates::parse("MultiKueueManagerQuotaAutomation=true").expect("gates");
    let mut control = leading(ManagerSettings::new(&file, &gates, &kinds(), true));
    let mut held = workload();
    held["metadata"]["name"] = json!(name());
    held["status"]["clusterName"] = json!("east");
    let workloads = if holds { vec![held] } else { vec![] };
    let lists = dispatching_lists(&hub_job("20", true, &json!({})), &workloads);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    let west = json!({"metadata": {"name": "west", "resourceVersion": "41"}, "spec": {}});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(west))), NOW);
    configure(&mut control, management);
    control
}

fn configure(control: &mut ManagerControl, management: &str) {
    let config = json!({
        "apiVersion": API, "kind": "MultiKueueConfig", "metadata": {"name": "all", "resourceVersion": "40"},
        "spec": {"clusters": ["east", "west"], "quotaManagement": management},
    });
    control.observe(ManagerInput::MultiKueueConfig(Change::Apply(shared(config))), NOW);
}

fn worker(control: &mut ManagerControl, name: &str, input: WorkerInput) {
    control.observe(ManagerInput::Worker(name.into(), input), NOW);
}

fn link(control: &mut ManagerControl, name: &str, active: bool) {
    let reason = if active { "Active" } else { "ClientConnectionFailed" };
    let link = ConnectionStatus { active, reason, message: String::new() };
    worker(control, name, WorkerInput::Connection(link));
}

fn connect(control: &mut ManagerControl, name: &str, reports: Vec<Value>) {
    link(control, name, true);
    worker(control, name, WorkerInput::Workload(list(vec![])));
    worker(control, name, WorkerInput::Job(batch_job(), jobs(vec![])));
    worker(control, name, WorkerInput::Capacity(list(reports)));
}

/// A ClusterQueue of a worker.
fn cluster_queue(name: &str, resource: &str, nominal: &str) -> Value {
    let quota = json!({"name": resource, "nominalQuota": nominal});
    json!({
        "metadata": {"name": name, "resourceVersion": "1"},
        "spec": {"resourceGroups": [
            {"coveredResources": [resource], "flavors": [{"name": "there", "resources": [quota]}]},
        ]},
    })
}

/// A LocalQueue of a worker.
fn local_queue(namespace: &str, cluster_queue: &str) -> Value {
    json!({
        "metadata": {"name": "lq", "namespace": namespace, "resourceVersion": "1"},
        "spec": {"clusterQueue": cluster_queue},
    })
}

/// The worker is connected and has a queue of this quota behind the LocalQueue of the hub.
fn connect_queues(control: &mut ManagerControl, name: &str, cpu: &str) {
    connect(control, name, vec![]);
    let queues = vec![cluster_queue("mine", "cpu", cpu), cluster_queue("other", "cpu", "100")];
    worker(control, name, WorkerInput::ClusterQueue(list(queues)));
    let local = vec![local_queue("ns", "mine"), local_queue("elsewhere", "other")];
    worker(control, name, WorkerInput::LocalQueue(list(local)));
}

/// What is written at a second: the new quota, if any.
fn quota(control: &mut ManagerControl, second: i64) -> (Option<Value>, Decisions) {
    let now = NOW + second.seconds();
    let mut step = control.decide(now);
    // A queue has one write in flight: the quota follows the answer to its status.
    if step.orders.iter().any(|order| order.ticket.purpose.name() == "cluster-queue-status") {
        done(control, &step, "cluster-queue-status", hub_queue("8", "1"), now);
        step = control.decide(now);
    }
    let written = step.orders.iter().find(|order| order.ticket.purpose.name() == "manager-quota");
    let body = written.map(|order| {
        let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
        assert_eq!(body["metadata"]["resourceVersion"], "1", "a newer spec is not overwritten");
        body["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"].clone()
    });
    (body, step)
}

/// The ClusterQueue of the hub.
fn hub_queue(cpu: &str, version: &str) -> Value {
    let mut queue = cluster_queue("cq", "cpu", cpu);
    queue["metadata"]["resourceVersion"] = json!(version);
    queue["spec"]["namespaceSelector"] = json!({});
    queue["spec"]["resourceGroups"][0]["flavors"][0]["name"] = json!("default");
    queue["spec"]["admissionChecksStrategy"] = json!({"admissionChecks": [{"name": "workers"}]});
    queue
}

/// Reason and message of the condition that is written at this second.
fn condition(control: &mut ManagerControl, second: i64) -> Option<(String, String)> {
    let step = control.decide(NOW + second.seconds());
    let is_status = |order: &&Order| order.ticket.purpose.name() == "cluster-queue-status";
    let order = step.orders.iter().find(is_status)?;
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    done(control, &step, "cluster-queue-status", hub_queue("8", "1"), NOW + second.seconds());
    let all = body["status"]["conditions"].as_array()?.clone();
    let one = all.iter().find(|one| one["type"] == "MultiKueueManagerQuotaAutomation")?;
    let text = |field: &str| one[field].as_str().expect("a text").to_owned();
    Some((text("reason"), text("message")))
}

#[test]
fn the_quota_is_the_sum_once_everything_is_known() {
    let mut control = manager("Automated", false);
    assert_eq!(quota(&mut control, 0).0, None, "no connection was tried");
    connect_queues(&mut control, "east", "3");
    connect(&mut control, "west", vec![]);
    assert_eq!(quota(&mut control, 2).0, None, "the queues of west were not listed");
    worker(&mut control, "west", WorkerInput::LocalQueue(list(vec![local_queue("ns", "q")])));
    let queue = cluster_queue("q", "cpu", "2500m");
    worker(&mut control, "west", WorkerInput::ClusterQueue(list(vec![queue])));
    let (sum, step) = quota(&mut control, 4);
    assert_eq!(sum, Some(json!("5500m")));
    assert!(orders(&step).contains(&"hub manager-quota".to_owned()));
    let after = hub_queue("5500m", "90");
    done(&mut control, &step, "manager-quota", after, NOW + 4.seconds());
    let said = condition(&mut control, 10).expect("a condition");
    let message = "ClusterQueue quota is automatically managed based on MultiKueue workers.";
    assert_eq!(said, ("QuotaAutomated".to_owned(), message.to_owned()));
    assert_eq!(quota(&mut control, 20).0, None, "it is as it should be");
}

#[test]
fn a_burst_of_changes_is_evaluated_once_in_a_second_and_the_last_one_counts() {
    let mut control = manager("Automated", false);
    connect_queues(&mut control, "west", "0");
    connect_queues(&mut control, "east", "3");
    let (sum, _) = quota(&mut control, 0);
    assert_eq!(sum, Some(json!("3")));
    let queue = cluster_queue("mine", "cpu", "4");
    worker(&mut control, "east", WorkerInput::ClusterQueue(Change::Apply(shared(queue))));
    let step = control.decide(NOW);
    assert!(step.wake.is_some_and(|at| at <= NOW + 1.second()), "{:?}", step.wake);
}

#[test]
fn a_worker_that_is_away_counts_until_it_is_lost() {
    let mut control = manager("Automated", false);
    connect_queues(&mut control, "west", "2");
    connect_queues(&mut control, "east", "6");
    assert_eq!(quota(&mut control, 0).0, None, "the sum is the quota of the hub");
    link(&mut control, "east", false);
    assert_eq!(quota(&mut control, 60).0, None, "its Workloads stay admitted");
    let (sum, _) = quota(&mut control, 15 * 60 + 2);
    assert_eq!(sum, Some(json!("2")), "it is lost");
}

#[test]
fn after_a_restart_the_quota_stays_while_work_is_on_a_worker_that_is_away() {
    for (holds, expected) in [(true, None), (false, Some(json!("2")))] {
        let mut control = manager("Automated", holds);
        connect_queues(&mut control, "west", "2");
        link(&mut control, "east", false);
        assert_eq!(quota(&mut control, 0).0, expected, "{holds}");
    }
}

#[test]
fn a_worker_with_an_agent_counts_with_its_nodes() {
    let mut control = manager("Automated", false);
    let report = json!({
        "metadata": {"name": "local", "resourceVersion": "9"}, "spec": {},
        "status": {"protocol": 1, "mode": "Thin", "asOf": "1", "nodeClasses": [
            {"count": 3, "free": {"cpu": "1"}, "size": {"cpu": "4", "pods": "110"}},
        ]},
    });
    connect(&mut control, "east", vec![report]);
    connect_queues(&mut control, "west", "1");
    assert_eq!(quota(&mut control, 0).0, Some(json!("13")));
}

#[test]
fn what_cannot_be_a_sum_is_said_and_the_quota_stays() {
    let mut control = manager("Automated", false);
    connect_queues(&mut control, "west", "1");
    connect(&mut control, "east", vec![]);
    let queues = vec![cluster_queue("mine", "nvidia.com/gpu", "8")];
    worker(&mut control, "east", WorkerInput::ClusterQueue(list(queues)));
    worker(&mut control, "east", WorkerInput::LocalQueue(list(vec![local_queue("ns", "mine")])));
    let (reason, message) = condition(&mut control, 0).expect("a condition");
    assert_eq!(reason, "UnsupportedConfiguration");
    assert_eq!(
        message,
        "manager-side coveredResources is missing resources configured on workers: [nvidia.com/gpu]"
    );
    assert_eq!(quota(&mut control, 10).0, None);
}

#[test]
fn a_shape_that_cannot_follow_workers_is_said_before_any_is_reached() {
    let mut control = manager("Automated", false);
    let mut queue = hub_queue("8", "5");
    let other = json!([{"name": "memory", "nominalQuota": "1Gi"}]);
    let groups = queue["spec"]["resourceGroups"].as_array_mut().expect("a list");
    groups.push(
        json!({"coveredResources": ["memory"], "flavors": [{"name": "o", "resources": other}]}),
    );
    control.observe(ManagerInput::ClusterQueue(Change::Apply(shared(queue))), NOW);
    let text = "Quota automation requires that the manager-side ClusterQueue has exactly one ResourceFlavor";
    let said = condition(&mut control, 0).expect("a condition");
    assert_eq!(said, ("UnsupportedConfiguration".to_owned(), text.to_owned()));
}

#[test]
fn a_config_that_does_not_exist_is_unsupported() {
    let mut control = manager("Automated", false);
    let key = Key { namespace: None, name: "all".into() };
    control.observe(ManagerInput::MultiKueueConfig(Change::Delete(key)), NOW);
    let said = condition(&mut control, 0).expect("a condition");
    let text = "The referenced MultiKueueConfig was not found.";
    assert_eq!(said, ("UnsupportedConfiguration".to_owned(), text.to_owned()));
}

#[test]
fn a_manual_quota_is_left_alone() {
    let mut control = manager("Manual", false);
    connect_queues(&mut control, "west", "1");
    connect_queues(&mut control, "east", "1");
    let (reason, message) = condition(&mut control, 0).expect("a condition");
    assert_eq!(reason, "NotRequested");
    assert_eq!(message, "MultiKueue manager quota automation has not been requested.");
    assert_eq!(quota(&mut control, 10).0, None);
    configure(&mut control, "Automated");
    assert_eq!(quota(&mut control, 20).0, Some(json!("2")));
}

#[test]
fn a_clock_that_is_set_back_keeps_no_quota_back() {
    let mut control = manager("Automated", false);
    connect_queues(&mut control, "west", "0");
    connect_queues(&mut control, "east", "3");
    let (_, step) = quota(&mut control, 0);
    done(&mut control, &step, "manager-quota", hub_queue("3", "1"), NOW);
    control.clock_jumped(jiff::SignedDuration::from_secs(-9_000));
    let queue = cluster_queue("mine", "cpu", "4");
    worker(&mut control, "east", WorkerInput::ClusterQueue(Change::Apply(shared(queue))));
    assert_eq!(quota(&mut control, -9_000).0, None, "its period has begun");
    assert_eq!(quota(&mut control, -8_990).0, Some(json!("4")));
}
