//! Plays what surrounds groups of pods: the API server, a scheduler with room in every queue but `tiny`, a kubelet and the garbage
//! collector. What is done about the pods is decided by the crate.

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    meta::{Condition, is_true},
    v1beta2::Workload,
};
use jiff::Timestamp;
use jobs::{
    GenericJob, JobGates, Pod, StopWrite,
    admitted_infos::AssignedFlavors,
    construct_workload::{KeysToCopy, WorkloadPriority},
    pods::group::{self, GroupContext, RoleComparison},
    reconcile::{JobStep, ReconcileStep, WorkloadStep},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::{flavors, pods::with_defaults};

/// More rounds than any step needs.
const MAX_ROUNDS: usize = 50;

/// Objects of one namespace.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) pods: BTreeMap<String, Pod>,
    pub(crate) workloads: BTreeMap<String, Workload>,
    /// Queues that are drained.
    drained: BTreeSet<String>,
    /// Reasons of Events about pods.
    pub(crate) events: BTreeSet<String>,
    second: i64,
}

impl World {
    /// Sends a request and lets everything settle.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        settles: bool,
    ) {
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        let mut parts = path.rsplit('/');
        let (last, before) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match (method, before, last, body) {
            ("POST", _, "pods", Some(pod)) => self.create_pod(pod),
            ("POST", _, "workloads", Some(workload)) => self.create_workload(workload),
            ("PATCH", name, "status", Some(patch)) => self.patch_pod(name, patch),
            ("PATCH", "pods", name, Some(patch)) => self.patch_pod(name, patch),
            ("PATCH", "workloads", name, Some(patch)) => {
                patch_object(self.workloads.get_mut(name), patch);
            }
            ("PATCH", "clusterqueues", _, Some(patch)) => {
                let drains = patch["spec"]["stopPolicy"] == "HoldAndDrain";
                self.drained = drains.then(|| "own".to_owned()).into_iter().collect();
            }
            ("DELETE", "pods", name, _) => self.delete_pod(name),
            ("DELETE", "workloads", name, _) => self.delete_workload(name),
            _ => {}
        }
        self.settle();
        self.second += i64::from(settles);
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + self.second).expect("a time")
    }

    fn create_pod(&mut self, body: &Value) {
        let mut object = body.clone();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        fill_spec(&mut object["spec"]);
        let mut object = with_defaults(&object, "base");
        object["metadata"]["uid"] = json!(format!("uid-{name}"));
        object["metadata"]["namespace"] = json!("ns");
        object["status"] = json!({ "phase": "Pending" });
        let mut pod: Pod = serde_json::from_value(object).expect("a pod decodes");
        pod.metadata.creation_timestamp = Some(Time(self.now()));
        self.pods.insert(name, pod);
    }

    fn create_workload(&mut self, body: &Value) {
        let workload: Workload = serde_json::from_value(body.clone()).expect("a Workload decodes");
        self.workloads.insert(workload.metadata.name.clone().unwrap_or_default(), workload);
    }

    fn patch_pod(&mut self, name: &str, patch: &Value) {
        let text = patch.to_string().replace("<now>", "2026-01-01T00:00:00Z");
        let patch = serde_json::from_str(&text).expect("JSON");
        patch_object(self.pods.get_mut(name), &patch);
    }

    /// A pod that runs is ended by its kubelet at once.
    fn delete_pod(&mut self, name: &str) {
        let now = Time(self.now());
        let Some(pod) = self.pods.get_mut(name) else { return };
        pod.metadata.deletion_timestamp.get_or_insert(now);
        if pod.status.phase == "Running" {
            "Failed".clone_into(&mut pod.status.phase);
        }
    }

    fn delete_workload(&mut self, name: &str) {
        let now = Time(self.now());
        if let Some(workload) = self.workloads.get_mut(name) {
            workload.metadata.deletion_timestamp.get_or_insert(now);
        }
    }

    fn settle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let before = (self.pods.clone(), json!(self.workloads));
            self.play_cluster();
            for group in self.groups() {
                self.reconcile(&group);
            }
            if before == (self.pods.clone(), json!(self.workloads)) {
                return;
            }
        }
        unreachable!("a step settles");
    }

    fn groups(&self) -> BTreeSet<String> {
        let of_pods = self.pods.values().map(|pod| pod.group(JobGates::default()).name);
        let of_pods = of_pods.filter(|name| !name.is_empty()).map(str::to_owned);
        of_pods.chain(self.workloads.keys().cloned()).collect()
    }

    fn reconcile(&mut self, name: &str) {
        let gates = JobGates::default();
        let members: Vec<&Pod> =
            self.pods.values().filter(|pod| pod.group(gates).name == name).collect();
        let workload = self.workloads.get(name);
        let steps = group::reconcile(GroupContext {
            group: name,
            pods: &members,
            workload,
            copied: &KeysToCopy::default(),
            flavors: AssignedFlavors::Own(&flavors()),
            gates,
            now: self.now(),
            is_free: &|_| true,
            comparison: RoleComparison::NONE,
        });
        let waiting = workload
            .filter(|one| !is_true(&one.status.conditions, "Finished") && !members.is_empty())
            .and_then(|workload| {
                group::waiting_for_replacement(&members, workload, RoleComparison::NONE, gates)
            });
        let created = group::compose(name, &members, RoleComparison::NONE, gates).ok().and_then(
            |composition| {
                let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
                group::group_workload(name, &composition, priority, &copied, gates)
            },
        );
        for step in steps {
            self.take(name, step, created.as_ref());
        }
        if let (Some(waiting), Some(workload)) = (waiting, self.workloads.get_mut(name)) {
            set(workload, "WaitingForReplacementPods", waiting.status, &waiting.reason);
        }
    }

    fn take(&mut self, group: &str, step: ReconcileStep<Pod>, created: Option<&Workload>) {
        match step {
            ReconcileStep::CreateWorkload => {
                let workload = created.expect("a composed group").clone();
                self.workloads.insert(group.to_owned(), workload);
            }
            ReconcileStep::Job(JobStep::Start(pod))
            | ReconcileStep::Job(JobStep::Finalize(pod))
            | ReconcileStep::Job(JobStep::Stop(
                StopWrite::Status(pod) | StopWrite::Object(pod),
                _,
            )) => {
                self.pods.insert(pod.metadata.name.clone().unwrap_or_default(), *pod);
            }
            ReconcileStep::Job(JobStep::Stop(StopWrite::Delete(pod), _)) => self.delete_named(&pod),
            ReconcileStep::Job(JobStep::DeleteExcess(pod)) => {
                self.events.insert("ExcessPodDeleted".to_owned());
                self.delete_named(&pod);
            }
            ReconcileStep::Refuse { reason, .. } => {
                self.events.insert(reason.to_owned());
            }
            ReconcileStep::Workload { name, write: WorkloadStep::Delete } => {
                self.delete_workload(&name);
            }
            other => self.change_workload(group, other),
        }
    }

    fn delete_named(&mut self, pod: &Pod) {
        let name = pod.metadata().name.clone().unwrap_or_default();
        self.delete_pod(&name);
    }

    fn change_workload(&mut self, group: &str, step: ReconcileStep<Pod>) {
        let Some(workload) = self.workloads.get_mut(group) else { return };
        match step {
            ReconcileStep::UpdateWorkload(after) => *workload = *after,
            ReconcileStep::Workload { write: WorkloadStep::Finish { reason, .. }, .. } => {
                set(workload, "Finished", true, reason);
            }
            ReconcileStep::Workload { write: WorkloadStep::RemoveFinalizer, .. } => {
                workload.metadata.finalizers = None;
            }
            ReconcileStep::Workload {
                write: WorkloadStep::UpdateReclaimablePods(pods), ..
            } => {
                workload.status.reclaimable_pods = pods;
            }
            ReconcileStep::Workload { write: WorkloadStep::UpdateQueueName(_), .. } => {}
            ReconcileStep::Workload { write: WorkloadStep::AddOwners(owners), .. } => {
                self.events.insert("OwnerReferencesAdded".to_owned());
                workload.metadata.owner_references.get_or_insert_default().extend(owners);
            }
            ReconcileStep::Workload { write: WorkloadStep::ReleaseQuota, .. } => {
                workload.status.admission = None;
                set(workload, "QuotaReserved", false, "Pending");
                set(workload, "Admitted", false, "NoReservation");
            }
            _ => unreachable!("a step about a Workload"),
        }
    }

    /// The garbage collector, the scheduler, and the kubelets.
    fn play_cluster(&mut self) {
        self.pods.retain(|_, pod| !pod.is_deleting() || pod.metadata.finalizers.is_some());
        let uids: BTreeSet<String> =
            self.pods.values().filter_map(|pod| pod.metadata.uid.clone()).collect();
        self.workloads.retain(|_, workload| {
            let owners = workload.metadata.owner_references.as_mut();
            let orphaned = owners.is_some_and(|owners| {
                let had_any = !owners.is_empty();
                owners.retain(|owner| uids.contains(&owner.uid));
                had_any && owners.is_empty()
            });
            let deleted = workload.metadata.deletion_timestamp.is_some() || orphaned;
            !deleted || workload.metadata.finalizers.is_some()
        });
        for workload in self.workloads.values_mut() {
            schedule(workload, &self.drained);
        }
        for pod in self.pods.values_mut().filter(|pod| pod.runs() && pod.status.phase == "Pending")
        {
            "Running".clone_into(&mut pod.status.phase);
            pod.spec.rest.insert("nodeName".to_owned(), json!("node-1"));
        }
    }
}

/// Admits what may be admitted, and evicts what a queue or its user stopped.
fn schedule(workload: &mut Workload, drained: &BTreeSet<String>) {
    let is = |workload: &Workload, kind: &str| is_true(&workload.status.conditions, kind);
    let stopped = drained.contains(&workload.spec.queue_name);
    let inactive = !workload.is_active();
    if is(workload, "Finished") || workload.metadata.deletion_timestamp.is_some() {
        return;
    }
    if is(workload, "Admitted") {
        if (stopped || inactive) && !is(workload, "Evicted") {
            let reason = if stopped { "ClusterQueueStopped" } else { "Deactivated" };
            set(workload, "Evicted", true, reason);
        }
        return;
    }
    let waits = is(workload, "WaitingForReplacementPods");
    if stopped || inactive || waits || workload.spec.queue_name == "tiny" {
        return set(workload, "QuotaReserved", false, "Pending");
    }
    let assignments: Vec<Value> = workload
        .spec
        .pod_sets
        .iter()
        .map(|set| {
            let text = json!(set.template).to_string();
            let flavor = if text.contains("example.com/gpu") { "tainted" } else { "plain" };
            json!({ "name": set.name, "count": set.count, "flavors": { "cpu": flavor } })
        })
        .collect();
    let admission = json!({ "clusterQueue": "ample", "podSetAssignments": assignments });
    workload.status.admission = serde_json::from_value(admission).expect("an admission");
    set(workload, "QuotaReserved", true, "QuotaReserved");
    set(workload, "Admitted", true, "Admitted");
    if workload.status.conditions.iter().any(|one| one.r#type == "Evicted") {
        set(workload, "Evicted", false, "QuotaReserved");
    }
}

fn set(workload: &mut Workload, kind: &str, status: bool, reason: &str) {
    let conditions = &mut workload.status.conditions;
    conditions.retain(|one| one.r#type != kind);
    conditions.push(Condition {
        r#type: kind.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        ..Condition::default()
    });
    conditions.sort_by(|one, other| one.r#type.cmp(&other.r#type));
}

/// What the API server puts into the spec of every pod before the webhooks see it.
fn fill_spec(spec: &mut Value) {
    spec["priority"] = json!(0);
    let tolerations =
        spec.as_object_mut().expect("a spec").entry("tolerations").or_insert(json!([]));
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerations.as_array_mut().expect("a list").push(json!({
            "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
        }));
    }
}

fn patch_object<T: serde::Serialize + serde::de::DeserializeOwned>(
    object: Option<&mut T>,
    patch: &Value,
) {
    let Some(object) = object else { return };
    let mut value = json!(object);
    json_patch::merge(&mut value, patch);
    *object = serde_json::from_value(value).expect("the object decodes");
}
