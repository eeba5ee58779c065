//! Incremental upgrades, where they differ from the official operator's.

use super::*;

#[test]
fn a_group_appended_to_the_active_cluster_keeps_the_replicas_of_the_spec() {
    let (mut service, _) = upgrade();
    service["status"] = active("rs-a");
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    let group = |name: &str, replicas: u8| {
        json!({
            "groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": 9,
            "template": template,
        })
    };
    let groups = "workerGroupSpecs";
    service["spec"]["rayClusterConfig"][groups] = json!([group("a", 2)]);
    let children = cluster_of(service.clone(), "rs-a");
    service["spec"]["rayClusterConfig"][groups] = json!([group("a", 2), group("b", 3)]);
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let patch = orders.iter().find_map(|step| match step {
        RayStep::Patch { target, patch } if target.kind == "RayCluster" => Some(patch),
        _ => None,
    });
    let stored = patch.expect("a patch")["spec"][groups].as_array().expect("groups");
    let replicas: Vec<&Value> = stored.iter().map(|group| &group["replicas"]).collect();
    assert_eq!(replicas, [2, 3]);
}

#[test]
fn a_capacity_that_the_configuration_has_already_is_sent_and_noted() {
    let (mut service, children) = upgrade();
    service["spec"]["serveConfigV2"] = json!("applications:\n- name: one\ntarget_capacity: 50\n");
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let sent = orders.iter().filter_map(|step| match step {
        RayStep::Ask(it) if it.method == HeadMethod::Put && it.url.starts_with("http://rs-a-") => {
            it.body.as_ref().map(|body| body["target_capacity"].clone())
        }
        _ => None,
    });
    assert_eq!(sent.collect::<Vec<_>>(), [50]);
    let status = status(&ends).expect("a status");
    assert_eq!(status["activeServiceStatus"]["targetCapacity"], 50);
}

/// A RayService with a name for its next cluster, which is not made yet. Its active cluster is of the image `ray:1`.
fn before_the_second_cluster(image: &str) -> (Value, Vec<Value>) {
    let mut state = active("rs-a");
    state["pendingServiceStatus"] = json!({"rayClusterName": "rs-b"});
    state["conditions"][1]["status"] = json!("True");
    (ray_service(image, &state), cluster("rs-a", "ray:1"))
}

#[test]
fn a_spec_that_goes_back_before_the_new_cluster_is_made_makes_none() {
    let (service, children) = before_the_second_cluster("ray:1");
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    assert_eq!(new_clusters(&orders), 0);
    assert_eq!(sent(&orders), 1, "the active cluster gets its configuration");
    let status = status(&ends).expect("a status");
    assert_eq!(status["activeServiceStatus"]["rayClusterName"], "rs-a");
    assert_eq!(status["pendingServiceStatus"]["rayClusterName"], Value::Null);
    assert_eq!(status["conditions"][1]["reason"], "NoPendingCluster");
    let (service, children) = before_the_second_cluster("ray:2");
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    assert_eq!(new_clusters(&orders), 1, "the spec is another one");
}

#[test]
fn an_incremental_upgrade_ends_without_a_second_cluster_if_nothing_has_moved() {
    let pass_with = |capacity: i32, traffic: i32| {
        let (mut service, mut children) = upgrade();
        children.retain(|it| it["metadata"]["name"] != "rs-b");
        service["spec"]["rayClusterConfig"]["headGroupSpec"] =
            cluster_spec("ray:1")["headGroupSpec"].clone();
        let status = &mut service["status"];
        status["activeServiceStatus"]["targetCapacity"] = json!(capacity);
        status["activeServiceStatus"]["trafficRoutedPercent"] = json!(traffic);
        let rollback = json!({"type": "RollbackInProgress", "status": "True"});
        status["conditions"].as_array_mut().expect("conditions").push(rollback);
        let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
        (new_clusters(&orders), status_of(&ends))
    };
    let (n_made, status) = pass_with(100, 100);
    assert_eq!((n_made, &status["pendingServiceStatus"]["rayClusterName"]), (0, &Value::Null));
    assert_eq!(condition(&status, "RollbackInProgress"), Value::Null);
    assert_eq!(condition(&status, "UpgradeInProgress")["status"], "False");
    // The capacity that the active cluster gave up comes back with a second cluster only.
    assert_eq!(pass_with(50, 100).0, 1);
    assert_eq!(pass_with(100, 80).0, 1);
}

fn status_of(ends: &[RayStep]) -> Value {
    status(ends).expect("a status").clone()
}

fn condition(status: &Value, kind: &str) -> Value {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.find(|it| it["type"] == kind).cloned().unwrap_or_default()
}

/// Why a cluster says nothing of what it serves.
#[derive(Clone, Copy, Debug)]
enum DeadHead {
    Gone,
    Silent,
    Failing,
    RefusesWrites,
}

impl DeadHead {
    const ALL: [Self; 4] = [Self::Gone, Self::Silent, Self::Failing, Self::RefusesWrites];

    fn strike(self, children: &mut Vec<Value>, cluster: &str) {
        if !matches!(self, Self::Gone) {
            return;
        }
        children.retain(|it| it["metadata"]["name"] != format!("{cluster}-head"));
        let cluster = children.iter_mut().find(|it| it["metadata"]["name"] == cluster);
        cluster.expect("a cluster")["status"]["conditions"] =
            json!([{"type": "HeadPodReady", "status": "False"}]);
    }

    /// Answers for a dead head of `cluster` and a healthy other one.
    fn answers(self, cluster: &str) -> impl Fn(&HeadRequest) -> HeadAnswer {
        let dead = format!("http://{cluster}-");
        let healthy = head("RUNNING");
        move |request| match self {
            _ if !request.url.starts_with(&dead) => healthy(request),
            Self::Gone | Self::Silent => HeadAnswer::Unreachable("no answer".to_owned()),
            Self::RefusesWrites if request.method == HeadMethod::Get => healthy(request),
            _ => HeadAnswer::Response { code: 500, body: String::new() },
        }
    }
}

/// The statuses of a RayService pass by pass, until its upgrade ends.
fn course(mut service: Value, children: &[Value], dead: DeadHead, cluster: &str) -> Vec<Value> {
    let (mut memory, mut statuses) = (ServiceMemory::default(), Vec::new());
    for _ in 0..30 {
        let (_, ends) = pass(&service, children, &memory, dead.answers(cluster));
        memory = remembered(&ends).unwrap_or(&memory).clone();
        let Some(mut status) = status(&ends).cloned() else { break };
        for part in ["activeServiceStatus", "pendingServiceStatus"] {
            let part = status[part].as_object_mut().expect("a part");
            part.remove("lastTrafficMigratedTime");
        }
        service["status"] = status.clone();
        statuses.push(status);
        if statuses.last().expect("a status")["pendingServiceStatus"]["rayClusterName"].is_null() {
            break;
        }
    }
    statuses
}

#[test]
fn a_rollback_ends_although_the_head_of_the_new_cluster_is_dead() {
    for dead in DeadHead::ALL {
        let (mut service, mut children) = upgrade();
        service["spec"]["rayClusterConfig"]["headGroupSpec"] =
            cluster_spec("ray:1")["headGroupSpec"].clone();
        dead.strike(&mut children, "rs-b");
        let statuses = course(service, &children, dead, "rs-b");
        let last = statuses.last().expect("a status");
        assert_eq!(last["activeServiceStatus"]["rayClusterName"], "rs-a", "{dead:?}");
        assert_eq!(last["activeServiceStatus"]["trafficRoutedPercent"], 100, "{dead:?}");
        assert_eq!(last["pendingServiceStatus"]["rayClusterName"], Value::Null, "{dead:?}");
        assert_eq!(condition(last, "RollbackInProgress"), Value::Null, "{dead:?}");
    }
}

#[test]
fn an_upgrade_ends_although_the_head_of_the_old_cluster_is_dead() {
    for dead in DeadHead::ALL {
        let (service, mut children) = upgrade();
        dead.strike(&mut children, "rs-a");
        let statuses = course(service, &children, dead, "rs-a");
        let last = statuses.last().expect("a status");
        assert_eq!(last["activeServiceStatus"]["rayClusterName"], "rs-b", "{dead:?}");
    }
}

#[test]
fn an_upgrade_waits_for_the_head_of_the_new_cluster() {
    for dead in DeadHead::ALL {
        let (service, mut children) = upgrade();
        dead.strike(&mut children, "rs-b");
        let statuses = course(service, &children, dead, "rs-b");
        for status in statuses {
            assert_eq!(status["activeServiceStatus"]["rayClusterName"], "rs-a", "{dead:?}");
            assert_eq!(status["pendingServiceStatus"]["targetCapacity"], 50, "{dead:?}");
            assert_eq!(condition(&status, "RollbackInProgress"), Value::Null, "{dead:?}");
        }
    }
}

/// Heads that serve, and report the capacity that they were last sent; before that `capacity`, as Ray writes it.
struct ReportingHeads {
    capacity: Value,
    puts: Vec<(String, Value)>,
}

impl ReportingHeads {
    fn new(capacity: Value) -> Self {
        Self { capacity, puts: Vec::new() }
    }

    /// Lets a pass ask these heads. Returns the memory and the status that it leaves.
    fn pass(
        &mut self,
        service: &Value,
        children: &[Value],
        memory: &ServiceMemory,
    ) -> (ServiceMemory, Option<Value>) {
        let puts = &self.puts;
        let answer = |request: &HeadRequest| {
            let of_same_host =
                |put: &&(String, Value)| put.0.split('/').nth(2) == request.url.split('/').nth(2);
            let sent = puts.iter().rfind(of_same_host).map(|put| &put.1["target_capacity"]);
            let config = json!({"name": "one", "import_path": "old"});
            let one = json!({"status": "RUNNING", "deployed_app_config": config});
            let mut body = json!({"applications": {"one": one}});
            if self.capacity != "absent" {
                body["target_capacity"] = sent.unwrap_or(&self.capacity).clone();
            }
            HeadAnswer::Response { code: 200, body: body.to_string() }
        };
        let (orders, ends) = pass(service, children, memory, answer);
        self.puts.extend(orders.into_iter().filter_map(|step| match step {
            RayStep::Ask(it) if it.method == HeadMethod::Put => Some((it.url, it.body?)),
            _ => None,
        }));
        (remembered(&ends).unwrap_or(memory).clone(), status(&ends).cloned())
    }

    /// The configurations that the old cluster was sent.
    fn sent_to_old(&self) -> Vec<&Value> {
        let is_old = |put: &&(String, Value)| put.0.starts_with("http://rs-a-");
        self.puts.iter().filter(is_old).map(|put| &put.1).collect()
    }
}

/// A RayService after the pass in which the old cluster gave up capacity and its head was dead.
fn after_an_unsent_step(dead: DeadHead) -> (Value, Vec<Value>, ServiceMemory) {
    let (mut service, healthy) = upgrade();
    let mut children = healthy.clone();
    dead.strike(&mut children, "rs-a");
    let (_, ends) = pass(&service, &children, &ServiceMemory::default(), dead.answers("rs-a"));
    service["status"] = status_of(&ends);
    assert_eq!(service["status"]["activeServiceStatus"]["targetCapacity"], 50, "{dead:?}");
    (service, healthy, remembered(&ends).cloned().unwrap_or_default())
}

#[test]
fn a_head_that_missed_a_capacity_step_gets_it_when_it_answers_again() {
    for dead in DeadHead::ALL {
        let (service, children, memory) = after_an_unsent_step(dead);
        // Also after a restart of the operator. Ray writes the capacity as a float, and null for all of it.
        for memory in [memory, ServiceMemory::default()] {
            for capacity in [json!(100), json!(100.0), Value::Null] {
                let mut heads = ReportingHeads::new(capacity.clone());
                let (memory, status) = heads.pass(&service, &children, &memory);
                let missed = json!({
                    "applications": [{"name": "one", "import_path": "old"}], "target_capacity": 50,
                });
                assert_eq!(heads.sent_to_old(), [&missed], "{dead:?} {capacity}");
                let mut service = service.clone();
                service["status"] = status.unwrap_or(service["status"].take());
                heads.pass(&service, &children, &memory);
                assert_eq!(heads.sent_to_old().len(), 1, "{dead:?} {capacity}: not sent again");
            }
        }
    }
}

#[test]
fn a_head_that_has_its_capacity_or_does_not_report_it_gets_none() {
    let (service, children, memory) = after_an_unsent_step(DeadHead::Silent);
    for capacity in [json!(50), json!(50.0), json!("absent")] {
        let mut heads = ReportingHeads::new(capacity.clone());
        heads.pass(&service, &children, &memory);
        assert_eq!(heads.sent_to_old(), Vec::<&Value>::new(), "{capacity}");
    }
}

#[test]
fn a_rollback_sends_a_missed_capacity_step_to_the_new_cluster() {
    let (mut service, children) = upgrade();
    let status = &mut service["status"];
    status["pendingServiceStatus"]["targetCapacity"] = json!(0);
    let rollback = json!({"type": "RollbackInProgress", "status": "True"});
    status["conditions"].as_array_mut().expect("conditions").push(rollback);
    service["spec"]["rayClusterConfig"]["headGroupSpec"] =
        cluster_spec("ray:1")["headGroupSpec"].clone();
    let mut heads = ReportingHeads::new(json!(100));
    let (memory, _) = heads.pass(&service, &children, &ServiceMemory::default());
    let to_new = |heads: &ReportingHeads| -> Vec<Value> {
        let is_new = |put: &&(String, Value)| put.0.starts_with("http://rs-b-");
        heads.puts.iter().filter(is_new).map(|put| put.1["target_capacity"].clone()).collect()
    };
    // Its configuration is sent after a restart of the operator, with the capacity of the status.
    assert_eq!(to_new(&heads), [0]);
    let mut heads = ReportingHeads::new(json!(100));
    heads.pass(&service, &children, &memory);
    assert_eq!(to_new(&heads), [0]);
}
