//! ProvisioningRequests of an agent (docs/reference/dispatch.md §4): the API server accepts every write and shows it, the autoscaler is
//! played.

use ::provisioning::{
    EntryTemplate,
    headroom::{NodeClaim, NodePool},
};
use crds::v1beta2::ProvisioningRequestConfigSpec;
use runtime::watch::Unavailable;

use super::{assigned_nodes::Worker, provisioning::AskedApi, *};

const REQUEST: &str = "train-sluice-provisioning-1";
const TEMPLATE: &str = "ppt-train-sluice-provisioning-1-main";

/// An agent of one node of a cpu, whose autoscaler can add nodes of four.
struct Scene {
    worker: Worker,
    api: AskedApi,
    now: Timestamp,
}

fn settings(config: &Value) -> AgentSettings {
    let config: ProvisioningRequestConfigSpec =
        serde_json::from_value(config.clone()).expect("a config");
    AgentSettings::new(AgentPolicy::default(), &kinds().handled).provisioning(Some(config))
}

fn config() -> Value {
    json!({"provisioningClassName": "atomic", "parameters": {"zone": "a"}})
}

impl Scene {
    fn new() -> Self {
        Self::of(settings(&config()))
    }

    fn of(settings: AgentSettings) -> Self {
        let worker = Worker::with(settings, &[("node", 1)]);
        let mut scene = Self { worker, api: AskedApi::default(), now: NOW };
        scene.list();
        scene
    }

    /// What an agent lists beside its cluster.
    fn list(&mut self) {
        let requests = self.api.of_kind("ProvisioningRequest");
        self.observe(AgentInput::ProvisioningRequest(listed(requests)));
        self.observe(AgentInput::PodTemplate(listed(self.api.of_kind("PodTemplate"))));
        let pool = json!({
            "metadata": {"name": "pool"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let claim = json!({
            "metadata": {"name": "pool-x", "labels": {"karpenter.sh/nodepool": "pool", "pool": "a100"}},
            "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4", "pods": "10"}},
        });
        let pools = AutoscalerInput::NodePool(listed::<NodePool>(vec![pool]));
        self.observe(AgentInput::Autoscaler(pools));
        let claims = AutoscalerInput::NodeClaim(listed::<NodeClaim>(vec![claim]));
        self.observe(AgentInput::Autoscaler(claims));
    }

    fn observe(&mut self, input: AgentInput) {
        self.worker.control.observe(input, self.now);
    }

    /// With the clone `train` of two pods of so many cpus.
    fn dispatch(mut self, cpus: i64) -> Self {
        self.worker.dispatch("train", 2, cpus, &json!({}));
        self.settle();
        self
    }

    fn settle(&mut self) {
        assert!(!self.settle_until(None), "no write ends it");
    }

    /// Decides and answers until nothing is written any more, or until a write: its number, and whether the API server takes it
    /// before the agent ends. Returns whether that write was reached.
    fn settle_until(&mut self, mut end: Option<(usize, bool)>) -> bool {
        for _ in 0..30 {
            let orders = self.worker.control.decide(self.now).orders;
            if orders.is_empty() {
                return false;
            }
            for order in &orders {
                match &mut end {
                    Some((0, taken)) => {
                        if *taken {
                            self.accept(order);
                        }
                        return true;
                    }
                    Some((further, _)) => *further -= 1,
                    None => {}
                }
                self.accept(order);
            }
        }
        panic!("the agent does not come to rest: {:?}", self.api.writes);
    }

    fn accept(&mut self, order: &Order) {
        match order.ticket.target.subject {
            Subject::ProvisioningRequest | Subject::PodTemplate => {
                let answer = self.api.write(order);
                self.worker.control.answered(&order.ticket, answer, self.now);
            }
            _ => self.worker.accept(order),
        }
    }

    /// How often an object was created.
    fn creates(&self, name: &str) -> usize {
        let created = |write: &&String| write.contains("-create ") && write.ends_with(name);
        self.api.writes.iter().filter(created).count()
    }

    /// The autoscaler sets a condition of the request.
    fn answer(&mut self, condition: &str, message: &str) {
        let change = self.api.answer(REQUEST, condition, message);
        self.observe(AgentInput::ProvisioningRequest(change));
        self.settle();
    }

    /// Another process takes over.
    fn restart(&mut self, settings: AgentSettings) {
        self.worker.control = AgentControl::new(settings);
        self.worker.list(vec![]);
        self.list();
        self.settle();
    }

    fn condition(&self, condition: &str) -> String {
        let all = self.worker.clones["train"]["status"]["conditions"].as_array();
        let one = all.into_iter().flatten().find(|one| one["type"] == condition);
        let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
        one.map_or("none".to_owned(), |one| {
            format!("{} {}: {}", text(one, "status"), text(one, "reason"), text(one, "message"))
        })
    }

    fn holds(&self, condition: &str) -> bool {
        self.condition(condition).starts_with("True")
    }

    /// The clone was refused with this message, holds no quota, and left nothing.
    fn expect_refused(&mut self, message: &str) {
        let wanted = format!("True ProvisioningFailed: {message}");
        assert_eq!(self.condition("sluice.dev/Refused"), wanted);
        assert_eq!(self.condition("Evicted"), wanted);
        assert!(!self.holds("QuotaReserved") && !self.worker.is_started("train"));
        // It is the manager's to choose another cluster.
        self.now += jiff::SignedDuration::from_hours(24);
        self.settle();
        assert!(!self.holds("QuotaReserved"), "a refusal is final");
    }
}

impl AskedApi {
    fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.objects.values().filter(|one| one["kind"] == kind).cloned().collect()
    }
}

fn listed<K: crds::decode::Decode>(objects: Vec<Value>) -> Change<K> {
    let decode = |value: Value| Arc::new(K::decode(&value).expect("an object"));
    Change::Reset { objects: objects.into_iter().map(decode).collect(), removed: vec![] }
}

fn not_served() -> AgentInput {
    let reason = Unavailable::NotServed;
    AgentInput::ProvisioningRequest(Change::Unavailable { reason, removed: vec![] })
}

#[test]
fn a_clone_that_needs_new_nodes_is_admitted_when_they_are_provided() {
    let mut scene = Scene::new().dispatch(2);
    assert_eq!(
        std::mem::take(&mut scene.api.writes),
        [
            format!("provisioning-template-create {TEMPLATE}"),
            format!("provisioning-request-create {REQUEST}"),
            format!("provisioning-template-owner {TEMPLATE}"),
        ]
    );
    let request = &scene.api.objects[REQUEST];
    assert_eq!(request["spec"]["provisioningClassName"], "atomic");
    assert_eq!(request["spec"]["parameters"], json!({"zone": "a"}));
    assert_eq!(request["spec"]["podSets"][0]["count"], 2);
    assert_eq!(request["metadata"]["namespace"], "ns");
    assert_eq!(request["metadata"]["ownerReferences"][0]["uid"], "wl-train");
    assert!(scene.holds("QuotaReserved") && !scene.holds("Admitted"));
    assert!(!scene.worker.is_started("train"));

    scene.answer("Provisioned", "there you are");
    assert!(scene.holds("Admitted") && scene.worker.is_started("train"));
    let annotations = &scene.worker.jobs["train"]["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["autoscaling.x-k8s.io/consume-provisioning-request"], REQUEST);
    assert_eq!(annotations["autoscaling.x-k8s.io/provisioning-class-name"], "atomic");
    assert!(scene.api.writes.is_empty());
}

#[test]
fn the_template_has_what_the_clone_carries_of_its_flavors() {
    let mut scene = Scene::new();
    let carried = json!({"main": {"tolerations": [{"key": "team"}]}}).to_string();
    let clone = json!({"metadata": {"annotations": {"sluice.dev/assignment": carried}}});
    scene.worker.dispatch_as("train", (2, 2), &json!({}), &clone);
    scene.settle();
    let tolerations = &scene.api.objects[TEMPLATE]["template"]["spec"]["tolerations"];
    assert_eq!(tolerations[0]["key"], "team");
}

#[test]
fn an_agent_with_queues_asks_beside_the_checks_of_the_queue() {
    let mut scene = Scene::of(settings(&config()).admitting(AdmissionMode::Quota));
    agent_queues::list_queues(&mut scene.worker, "8");
    agent_queues::dispatch(&mut scene.worker, "train", (2, 2), "lq", 0);
    scene.settle();
    assert!(scene.holds("QuotaReserved") && !scene.holds("Admitted"));
    let template = &scene.api.objects[TEMPLATE]["template"]["spec"];
    assert_eq!(template["nodeSelector"], json!({"pool": "a100"}), "what its flavor adds");
    scene.answer("Provisioned", "");
    assert!(scene.holds("Admitted") && scene.worker.is_started("train"));
}

#[test]
fn no_request_is_made_for_a_clone_that_needs_none() {
    let mut scene = Scene::new();
    scene.worker.dispatch("train", 1, 1, &json!({}));
    scene.settle();
    assert!(scene.holds("Admitted"), "it fits on the present node");
    assert!(scene.api.writes.is_empty());
    let managed = json!({"provisioningClassName": "atomic", "managedResources": ["gpu"]});
    let scene = Scene::of(settings(&managed)).dispatch(2);
    assert!(scene.holds("Admitted") && scene.api.writes.is_empty(), "it uses no managed resource");
    let settings = AgentSettings::new(AgentPolicy::default(), &kinds().handled);
    let scene = Scene::of(settings).dispatch(2);
    assert!(scene.holds("Admitted") && scene.api.writes.is_empty(), "without a class");
    let scene = Scene::new().dispatch(5);
    assert!(!scene.holds("QuotaReserved"), "no new node takes a pod of five cpus");
    assert!(scene.api.writes.is_empty());
}

#[test]
fn nodes_that_do_not_come_are_a_refusal_in_the_words_of_the_autoscaler() {
    for condition in ["Failed", "BookingExpired", "CapacityRevoked"] {
        let mut scene = Scene::new().dispatch(2);
        scene.answer(condition, "no nodes for sale");
        scene.expect_refused("the autoscaler provides no nodes: no nodes for sale");
        assert!(!scene.api.objects.contains_key(REQUEST), "after {condition}");
    }
}

#[test]
fn nodes_that_are_taken_back_end_the_work_and_an_expired_booking_does_not() {
    let mut scene = Scene::new().dispatch(2);
    scene.answer("Provisioned", "");
    scene.answer("BookingExpired", "too late");
    assert!(scene.holds("Admitted") && scene.worker.is_started("train"));
    scene.answer("CapacityRevoked", "a spot price");
    scene.expect_refused("the autoscaler provides no nodes: a spot price");
    assert!(!scene.api.objects.contains_key(REQUEST));
}

#[test]
fn a_request_of_another_owner_is_not_adopted() {
    let mut scene = Scene::new();
    let foreign = json!({"kind": "ProvisioningRequest", "metadata": {
        "namespace": "ns", "name": REQUEST, "uid": "other", "resourceVersion": "1",
    }});
    scene.api.objects.insert(REQUEST.to_owned(), foreign);
    scene.list();
    let mut scene = scene.dispatch(2);
    let message = format!(
        "ProvisioningRequest {REQUEST:?} exists, and Workload \"train\" does not control it"
    );
    scene.expect_refused(&message);
    assert!(scene.api.objects.contains_key(REQUEST));
}

#[test]
fn a_request_that_the_api_server_refuses_refuses_the_clone() {
    let mut scene = Scene::new();
    scene.api.refused.push(REQUEST.to_owned());
    let mut scene = scene.dispatch(2);
    let message = format!("Error creating ProvisioningRequest {REQUEST:?}: the quota is used up");
    scene.expect_refused(&message);
    let left: Vec<&String> = scene.api.objects.keys().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn another_process_continues_with_the_same_request() {
    let mut scene = Scene::new().dispatch(2);
    scene.api.writes.clear();
    scene.restart(settings(&config()));
    assert!(scene.api.writes.is_empty(), "{:?}", scene.api.writes);
    assert!(!scene.holds("Admitted"));
    scene.answer("Provisioned", "");
    assert!(scene.holds("Admitted") && scene.worker.is_started("train"));
    // A refusal that was written by a former process ends the work as well.
    let mut scene = Scene::new().dispatch(2);
    scene.worker.clone_status("train", |status| {
        let conditions = status["conditions"].as_array_mut().expect("conditions");
        conditions.push(json!({
            "type": "sluice.dev/Refused", "status": "True", "reason": "ProvisioningFailed",
            "message": "none", "lastTransitionTime": "1970-01-01T00:00:00Z",
        }));
    });
    scene.restart(settings(&config()));
    scene.expect_refused("none");
}

/// Ends the agent before or after a write, while it asks or after the answer, and lets another process continue. Returns whether there
/// was such a write.
fn ends_at(number: usize, taken: bool, (provided, answered): (bool, bool)) -> bool {
    let mut scene = Scene::new();
    scene.worker.dispatch("train", 2, 2, &json!({}));
    let end = Some((number, taken));
    let mut ended = scene.settle_until(end.filter(|_| !answered));
    scene.restart(settings(&config()));
    assert_eq!((scene.creates(REQUEST), scene.creates(TEMPLATE)), (1, 1), "at {number}");
    let condition = if provided { "Provisioned" } else { "Failed" };
    let change = scene.api.answer(REQUEST, condition, "so");
    scene.observe(AgentInput::ProvisioningRequest(change));
    ended |= scene.settle_until(end.filter(|_| answered));
    scene.restart(settings(&config()));
    assert_eq!((scene.creates(REQUEST), scene.creates(TEMPLATE)), (1, 1), "at {number}");
    if provided {
        assert!(scene.worker.is_started("train"), "at {number}");
    } else {
        scene.expect_refused("the autoscaler provides no nodes: so");
    }
    ended
}

#[test]
fn an_agent_that_ends_at_any_write_leaves_one_request_and_one_refusal() {
    for taken in [true, false] {
        for (moment, least) in [((true, false), 4), ((true, true), 2), ((false, true), 4)] {
            let n_ends = (0..20).filter(|number| ends_at(*number, taken, moment)).count();
            assert!(n_ends >= least, "{n_ends} ends at {moment:?}");
        }
    }
}

#[test]
fn a_request_that_no_autoscaler_answers_is_a_refusal_after_a_quarter_of_an_hour() {
    let after = |scene: &mut Scene, seconds| {
        scene.now = NOW + jiff::SignedDuration::from_secs(seconds);
        scene.settle();
    };
    let mut scene = Scene::new().dispatch(2);
    let wake = scene.worker.control.decide(NOW).wake.expect("the end of the wait");
    assert!(wake <= NOW + jiff::SignedDuration::from_secs(900), "{wake}");
    after(&mut scene, 899);
    assert!(!scene.holds("sluice.dev/Refused"));
    after(&mut scene, 900);
    let message = format!("no autoscaler has answered ProvisioningRequest {REQUEST:?} for 900s");
    scene.expect_refused(&message);
    let mut scene = Scene::new().dispatch(2);
    scene.answer("Accepted", "");
    after(&mut scene, 9000);
    assert!(scene.holds("QuotaReserved") && !scene.holds("sluice.dev/Refused"));
}

#[test]
fn nothing_is_decided_before_requests_and_templates_were_listed() {
    let mut worker = Worker::with(settings(&config()), &[("node", 4)]);
    worker.dispatch("train", 1, 1, &json!({}));
    assert!(worker.control.decide(NOW).orders.is_empty());
    worker.control.observe(not_served(), NOW);
    worker.control.observe(AgentInput::PodTemplate(listed::<EntryTemplate>(vec![])), NOW);
    worker.settle();
    assert!(worker.is_started("train"));
}

#[test]
fn a_cluster_that_serves_no_requests_admits_without_them() {
    let mut scene = Scene::new();
    scene.observe(not_served());
    let scene = scene.dispatch(2);
    assert!(scene.holds("Admitted") && scene.api.writes.is_empty());
    // The kind is deleted while a clone waits.
    let mut scene = Scene::new().dispatch(2);
    scene.observe(not_served());
    scene.settle();
    assert!(scene.holds("Admitted") && scene.worker.is_started("train"));
    // The class is taken from the configuration while a clone waits.
    let mut scene = Scene::new().dispatch(2);
    scene.restart(AgentSettings::new(AgentPolicy::default(), &kinds().handled));
    assert!(scene.holds("Admitted") && scene.worker.is_started("train"));
    // What a provided request added to running pods stays.
    let mut scene = Scene::new().dispatch(2);
    scene.answer("Provisioned", "");
    scene.observe(not_served());
    scene.settle();
    assert_eq!(scene.worker.clones["train"]["status"]["admissionChecks"][0]["state"], "Ready");
    assert!(scene.worker.is_started("train"));
}

#[test]
fn the_request_of_a_clone_that_is_over_is_deleted() {
    let mut scene = Scene::new().dispatch(2);
    scene.answer("Provisioned", "");
    scene.worker.clone_ends("train");
    scene.settle();
    assert!(!scene.api.objects.contains_key(REQUEST));
}

#[test]
fn a_refused_clone_without_a_job_releases_its_quota() {
    let mut scene = Scene::new().dispatch(2);
    let gone = Key { namespace: Some("ns".into()), name: "train".into() };
    scene.observe(AgentInput::Job(batch_job(), Change::Delete(gone)));
    scene.settle();
    scene.answer("Failed", "none");
    assert!(scene.holds("Evicted") && !scene.holds("QuotaReserved"));
}
