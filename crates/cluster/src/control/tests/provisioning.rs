//! Provisioning checks: the API server accepts every write and shows it, the autoscaler is played (docs/reference/kueue.md §2.3).

use ::provisioning::{EntryTemplate, ProvisioningRequest};
use runtime::watch::Unavailable;

use super::{cluster::Cluster, *};

const API: &str = "kueue.x-k8s.io/v1beta2";

/// A manager with the check `prov` on its queue, and what it has written beside Workloads.
struct Scene {
    cluster: Cluster,
    check: Value,
    api: AskedApi,
}

/// The API server for requests and templates: it accepts every write.
#[derive(Default)]
pub(super) struct AskedApi {
    /// Requests and templates by name.
    pub(super) objects: BTreeMap<String, Value>,
    /// Names of purposes with the object, in order.
    pub(super) writes: Vec<String>,
    /// Creates of these names are refused.
    pub(super) refused: Vec<String>,
    /// Creates of these names meet an object that no watch shows.
    existing: Vec<String>,
    version: u64,
}

impl Scene {
    /// With the Workload `train` of 2 cpus; a failed attempt is repeated once, after 10 seconds.
    fn new() -> Self {
        let mut scene = Self::of(settings());
        scene.config(&json!({}));
        scene.cluster.workload("train", 2, &json!({}));
        scene.settle();
        scene
    }

    /// Without config and Workload.
    fn of(settings: ManagerSettings) -> Self {
        let mut cluster = Cluster::with(settings);
        cluster.queue(&json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "prov"}]}}));
        let check = json!({
            "apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": "prov", "uid": "check"},
            "spec": {
                "controllerName": "kueue.x-k8s.io/provisioning-request",
                "parameters": {
                    "apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "cfg",
                },
            },
        });
        let mut scene = Self { cluster, check, api: AskedApi::default() };
        scene.change_check(&json!({}));
        scene
    }

    fn version(&mut self) -> String {
        self.api.version()
    }

    fn change_check(&mut self, fields: &Value) {
        cluster::json_merge(&mut self.check, fields);
        self.check["metadata"]["resourceVersion"] = json!(self.version());
        let check = shared(self.check.clone());
        self.cluster.observe(ManagerInput::AdmissionCheck(Change::Apply(check)));
    }

    fn config(&mut self, fields: &Value) {
        let mut spec = json!({
            "provisioningClassName": "queued",
            "retryStrategy": {"backoffLimitCount": 1, "backoffBaseSeconds": 10, "backoffMaxSeconds": 60},
        });
        cluster::json_merge(&mut spec, fields);
        let version = self.version();
        let config = json!({
            "apiVersion": API, "kind": "ProvisioningRequestConfig", "spec": spec,
            "metadata": {"name": "cfg", "resourceVersion": version},
        });
        let change = Change::Apply(shared(config));
        self.cluster.observe(ManagerInput::ProvisioningRequestConfig(change));
    }

    /// Decides and answers until nothing is written any more.
    fn settle(&mut self) {
        for _ in 0..20 {
            let mut step = self.cluster.control.decide(self.cluster.now);
            let of_workload = |order: &Order| order.ticket.target.subject == Subject::Workload;
            let (workloads, others): (Vec<_>, Vec<_>) =
                std::mem::take(&mut step.orders).into_iter().partition(of_workload);
            let rests = workloads.is_empty() && others.is_empty();
            self.cluster.take(Decisions { orders: workloads, ..step });
            others.iter().for_each(|order| self.accept(order));
            if rests {
                return;
            }
        }
        panic!("the manager does not come to rest: {:?}", self.api.writes);
    }

    fn accept(&mut self, order: &Order) {
        let outcome = match order.ticket.target.subject {
            Subject::AdmissionCheck => {
                self.change_check(&body(order));
                WriteOutcome::done(self.check.clone())
            }
            Subject::ProvisioningRequest | Subject::PodTemplate => self.api.write(order),
            // Status of queues.
            _ => return,
        };
        self.cluster.control.answered(&order.ticket, outcome, self.cluster.now);
    }

    /// The autoscaler sets a condition of a request.
    fn answer(&mut self, request: &str, condition: &str, message: &str) {
        let change = self.api.answer(request, condition, message);
        self.cluster.observe(ManagerInput::ProvisioningRequest(change));
        self.settle();
    }

    fn state(&self) -> &Value {
        &self.cluster.workloads["train"]["status"]["admissionChecks"][0]
    }

    fn state_and_message(&self) -> String {
        let text = |field: &str| self.state()[field].as_str().unwrap_or_default();
        format!("{}: {}", text("state"), text("message"))
    }

    fn active(&self) -> String {
        let condition = &self.check["status"]["conditions"][0];
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text("status"), text("reason"), text("message"))
    }

    fn take_writes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.api.writes)
    }

    fn names(&self) -> Vec<&str> {
        self.api.objects.keys().map(String::as_str).collect()
    }
}

impl AskedApi {
    fn version(&mut self) -> String {
        self.version += 1;
        (1000 + self.version).to_string()
    }

    /// What the API server answers to the write of a request or a template.
    pub(super) fn write(&mut self, order: &Order) -> WriteOutcome {
        let name = &*order.ticket.target.key.name;
        self.writes.push(format!("{} {name}", order.ticket.purpose.name()));
        if self.refused.iter().any(|one| one == name) {
            let (reason, message) = ("Forbidden".to_owned(), "the quota is used up".to_owned());
            return WriteOutcome::Refused { code: 403, reason, message };
        }
        if self.existing.iter().any(|one| one == name) {
            return WriteOutcome::Exists;
        }
        if order.write.request().method() == "DELETE" {
            self.objects.remove(name);
            return WriteOutcome::done(json!({"kind": "Status", "status": "Success"}));
        }
        let version = self.version();
        let mut object = self.objects.get(name).cloned().unwrap_or_else(|| json!({}));
        cluster::json_merge(&mut object, &body(order));
        object["metadata"]["resourceVersion"] = json!(version);
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{name}-{version}"));
            object["metadata"]["creationTimestamp"] = json!(NOW.to_string());
        }
        self.objects.insert(name.to_owned(), object.clone());
        WriteOutcome::done(object)
    }

    /// The autoscaler sets a condition of a request, which the watch shows.
    pub(super) fn answer(
        &mut self,
        request: &str,
        condition: &str,
        message: &str,
    ) -> Change<ProvisioningRequest> {
        let version = self.version();
        let object = self.objects.get_mut(request).expect("the request exists");
        object["metadata"]["resourceVersion"] = json!(version);
        object["status"] = json!({
            "provisioningClassDetails": {"zone": "a"},
            "conditions": [{"type": condition, "status": "True", "message": message}],
        });
        Change::Apply(shared(object.clone()))
    }
}

fn body(order: &Order) -> Value {
    serde_json::from_slice(order.write.request().body()).expect("JSON")
}

fn unavailable(reason: Unavailable) -> ManagerInput {
    ManagerInput::ProvisioningRequest(Change::Unavailable { reason, removed: vec![] })
}

#[test]
fn templates_and_their_request_are_created_and_the_room_admits_the_workload() {
    let mut scene = Scene::new();
    assert_eq!(
        scene.take_writes(),
        [
            "provisioning-template-create ppt-train-prov-1-main",
            "provisioning-request-create train-prov-1",
            "provisioning-template-owner ppt-train-prov-1-main",
        ]
    );
    let request = &scene.api.objects["train-prov-1"];
    assert_eq!(request["spec"]["podSets"][0]["count"], 2);
    assert_eq!(request["metadata"]["ownerReferences"][0]["uid"], "uid-train");
    let owner = &scene.api.objects["ppt-train-prov-1-main"]["metadata"]["ownerReferences"];
    assert_eq!(owner[0]["uid"], request["metadata"]["uid"]);
    assert_eq!(owner.as_array().map(Vec::len), Some(1));
    assert_eq!(scene.active(), "True Active: The admission check is active");
    let created = "train kueue-provisioning-request-controller ProvisioningRequestCreated: Created ProvisioningRequest: \"train-prov-1\"";
    assert!(scene.cluster.take_events().iter().any(|event| event == created));
    scene.cluster.take_writes();

    scene.answer("train-prov-1", "Provisioned", "there you are");
    assert_eq!(scene.state_and_message(), "Ready: there you are");
    let annotations = &scene.state()["podSetUpdates"][0]["annotations"];
    assert_eq!(annotations["autoscaling.x-k8s.io/consume-provisioning-request"], "train-prov-1");
    assert!(scene.cluster.condition("train", "Admitted").starts_with("True"));
    assert_eq!(scene.cluster.take_writes().len(), 1, "check and admission go out together");
    let ready = "train kueue-provisioning-request-controller AdmissionCheckUpdated: Admission check prov updated state from Pending to Ready with message: there you are";
    assert!(scene.cluster.take_events().iter().any(|event| event == ready));
    assert!(scene.take_writes().is_empty());
}

#[test]
fn a_failed_attempt_is_repeated_after_its_backoff_and_then_rejects() {
    let mut scene = Scene::new();
    scene.take_writes();
    scene.answer("train-prov-1", "Failed", "no room");
    assert!(scene.cluster.condition("train", "Evicted").starts_with("True AdmissionCheck"));
    assert_eq!(scene.state()["retryCount"], 1);
    assert_eq!(
        scene.cluster.workloads["train"]["status"]["requeueState"]["requeueAt"],
        "1970-01-01T00:00:10Z"
    );
    assert_eq!(scene.take_writes(), ["provisioning-request-delete train-prov-1"]);
    // Its job says that no pod is left.
    let released = json!({"status": {"admission": null, "conditions": [
        {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": ""},
    ]}});
    scene.cluster.workload("train", 2, &released);
    scene.settle();
    assert!(scene.take_writes().is_empty(), "before the backoff ends");
    scene.cluster.wait(10);
    scene.settle();
    assert!(scene.names().contains(&"train-prov-2"), "{:?}", scene.names());
    assert_eq!(scene.state_and_message(), "Pending: ");

    scene.answer("train-prov-2", "Failed", "still no room");
    let workload = &scene.cluster.workloads["train"];
    assert_eq!(workload["spec"]["active"], false, "{workload}");
    let events = scene.cluster.take_events().join("\n");
    assert!(
        events.contains("updated state from Pending to Rejected with message: still no room"),
        "{events}"
    );
}

#[test]
fn the_limits_of_a_booking_and_of_capacity_count_after_the_admission() {
    let mut scene = Scene::new();
    scene.answer("train-prov-1", "Provisioned", "");
    scene.answer("train-prov-1", "BookingExpired", "too late");
    assert!(scene.cluster.condition("train", "Admitted").starts_with("True"));
    scene.answer("train-prov-1", "CapacityRevoked", "the nodes are gone");
    assert_eq!(scene.cluster.workloads["train"]["spec"]["active"], false);
}

#[test]
fn a_check_is_active_once_its_config_exists_and_requests_can_be_made() {
    let mut scene = Scene::of(settings());
    scene.cluster.observe(unavailable(Unavailable::NotServed)).workload("train", 2, &json!({}));
    scene.settle();
    assert_eq!(
        scene.active(),
        "False BadParametersRef: ProvisioningRequestConfig.kueue.x-k8s.io \"cfg\" not found"
    );
    scene.config(&json!({}));
    scene.settle();
    let not_served = "False ProvisioningRequestsUnavailable: the cluster does not serve provisioningrequests.autoscaling.x-k8s.io/v1";
    assert_eq!(scene.active(), not_served);
    scene.cluster.observe(unavailable(Unavailable::Forbidden));
    scene.settle();
    let forbidden = "False ProvisioningRequestsUnavailable: the manager has no right to list and watch provisioningrequests.autoscaling.x-k8s.io/v1";
    assert_eq!(scene.active(), forbidden);
    assert!(scene.take_writes().is_empty() && scene.state().is_null(), "nothing is reserved");
    scene.cluster.observe(ManagerInput::ProvisioningRequest(list(vec![])));
    scene.settle();
    assert!(scene.active().starts_with("True Active"));
    assert!(scene.names().contains(&"train-prov-1"));
}

#[test]
fn a_refused_create_is_reported_and_tried_again() {
    let mut scene = Scene::of(settings());
    scene.api.refused.push("ppt-train-prov-1-main".to_owned());
    scene.config(&json!({}));
    scene.cluster.workload("train", 2, &json!({}));
    scene.settle();
    let message = "Error creating PodTemplate \"ppt-train-prov-1-main\": the quota is used up";
    assert_eq!(scene.state_and_message(), format!("Pending: {message}"));
    let event = format!("train kueue-provisioning-request-controller FailedCreate: {message}");
    assert_eq!(scene.cluster.take_events().iter().filter(|one| **one == event).count(), 1);
    scene.take_writes();
    scene.settle();
    assert!(scene.take_writes().is_empty(), "not at once");
    scene.api.refused.clear();
    scene.cluster.wait(60);
    scene.settle();
    assert!(scene.names().contains(&"train-prov-1"), "{:?}", scene.names());
    assert_eq!(scene.state_and_message(), "Pending: ");
}

#[test]
fn a_foreign_request_of_the_name_is_left_alone() {
    let mut scene = Scene::of(settings());
    let foreign = json!({"metadata": {
        "name": "train-prov-1", "namespace": "ns", "uid": "foreign", "resourceVersion": "900",
    }});
    let foreign: Arc<ProvisioningRequest> = shared(foreign);
    let shown = Change::Apply(foreign);
    scene.cluster.observe(ManagerInput::ProvisioningRequest(shown));
    scene.config(&json!({}));
    scene.cluster.workload("train", 2, &json!({}));
    scene.settle();
    assert_eq!(
        scene.state_and_message(),
        "Pending: ProvisioningRequest \"train-prov-1\" exists, and Workload \"train\" does not control it"
    );
    assert!(scene.take_writes().is_empty());
    let gone = Key { namespace: Some("ns".into()), name: "train-prov-1".into() };
    scene.cluster.observe(ManagerInput::ProvisioningRequest(Change::Delete(gone)));
    scene.settle();
    assert!(scene.names().contains(&"train-prov-1"));
}

#[test]
fn a_template_without_the_label_is_in_the_way() {
    let mut scene = Scene::of(settings());
    scene.api.existing.push("ppt-train-prov-1-main".to_owned());
    scene.config(&json!({}));
    scene.cluster.workload("train", 2, &json!({}));
    scene.settle();
    assert_eq!(scene.state_and_message(), "Pending: ", "the watch may show it yet");
    scene.cluster.wait(60);
    scene.settle();
    assert_eq!(
        scene.state_and_message(),
        "Pending: PodTemplate \"ppt-train-prov-1-main\" exists, and is not managed"
    );
}

#[test]
fn what_a_finished_workload_asked_with_is_deleted() {
    let mut scene = Scene::new();
    scene.answer("train-prov-1", "Provisioned", "");
    let finished = json!({"status": {"conditions": [
        {"type": "Finished", "status": "True", "reason": "Succeeded", "message": ""},
    ]}});
    scene.take_writes();
    scene.cluster.workload("train", 2, &finished);
    scene.settle();
    assert_eq!(scene.take_writes(), ["provisioning-request-delete train-prov-1"]);
}

#[test]
fn a_request_is_deleted_with_the_config_of_its_check() {
    let mut scene = Scene::new();
    scene.take_writes();
    scene.cluster.observe(unavailable(Unavailable::Forbidden));
    scene.settle();
    assert_eq!(scene.state_and_message(), "Pending: the check is not active");
    assert!(!scene.take_writes().iter().any(|one| one.starts_with("provisioning-request-delete")));
    let gone = Key { namespace: None, name: "cfg".into() };
    scene.cluster.observe(ManagerInput::ProvisioningRequestConfig(Change::Delete(gone)));
    let requests = scene.api.objects.get("train-prov-1").cloned().into_iter().collect();
    scene.cluster.observe(ManagerInput::ProvisioningRequest(list(requests)));
    scene.settle();
    let deleted = "provisioning-request-delete train-prov-1".to_owned();
    assert!(scene.take_writes().contains(&deleted));
    assert_eq!(scene.state_and_message(), "Pending: the check is not active");
}

#[test]
fn requests_of_evicted_workloads_stay_without_the_gate() {
    let gates = Gates::parse("CleanupProvisioningRequestsOnEviction=false").expect("gates");
    let settings = ManagerSettings::new(&Configuration::default(), &gates, &kinds(), false);
    let mut scene = Scene::of(settings);
    scene.config(&json!({}));
    scene.cluster.workload("train", 2, &json!({}));
    scene.settle();
    scene.answer("train-prov-1", "Failed", "no room");
    assert!(scene.cluster.condition("train", "Evicted").starts_with("True"));
    assert!(scene.names().contains(&"train-prov-1"));
}

#[test]
fn a_refused_attempt_after_a_failed_one_is_reported_once() {
    let gates = Gates::parse("CleanupProvisioningRequestsOnEviction=false").expect("gates");
    let settings = ManagerSettings::new(&Configuration::default(), &gates, &kinds(), false);
    let mut scene = Scene::of(settings);
    scene.config(&json!({}));
    scene.api.refused.push("train-prov-2".to_owned());
    scene.cluster.workload("train", 2, &json!({}));
    scene.settle();
    scene.answer("train-prov-1", "Failed", "no room");
    let core = &mut scene.cluster.control.core;
    let key = Key { namespace: Some("ns".into()), name: "train".into() };
    core.workloads.propose(&key, workloads::Transition::Release, &mut core.ctx);
    scene.settle();
    scene.cluster.wait(60);
    // The manager comes to rest, although two texts fit the state.
    scene.settle();
    let message = "Error creating ProvisioningRequest \"train-prov-2\": the quota is used up";
    assert_eq!(scene.state_and_message(), format!("Pending: {message}"));
}

#[test]
fn a_new_manager_goes_on_where_the_old_one_ended() {
    let mut old = Scene::new();
    // Its template is still that of the Workload.
    let owners = old.api.objects["train-prov-1"]["metadata"]["ownerReferences"].clone();
    let template = old.api.objects.get_mut("ppt-train-prov-1-main").expect("a template");
    template["metadata"]["ownerReferences"] = owners;
    let mut new = Scene::of(settings());
    (new.api.version, new.check) = (old.api.version, old.check.clone());
    new.change_check(&json!({}));
    new.config(&json!({}));
    new.api.objects = old.api.objects.clone();
    let decoded = |name: &str| old.api.objects[name].clone();
    let requests: Change<ProvisioningRequest> = list(vec![decoded("train-prov-1")]);
    let templates: Change<EntryTemplate> = list(vec![decoded("ppt-train-prov-1-main")]);
    new.cluster.observe(ManagerInput::ProvisioningRequest(requests));
    new.cluster.observe(ManagerInput::PodTemplate(templates));
    new.cluster.workload("train", 2, &old.cluster.workloads["train"]);
    new.settle();
    assert_eq!(new.take_writes(), ["provisioning-template-owner ppt-train-prov-1-main"]);
}
