//! A manager of one cluster with an API server that accepts every write of a Workload and shows it at once.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use runtime::events::EventRecord;

use super::{measurement::Measurement, *};

/// A manager, the Workloads of its cluster, and the time.
pub(super) struct Cluster {
    pub(super) control: ManagerControl,
    pub(super) workloads: BTreeMap<String, Value>,
    /// Names of purposes with the Workload that they are about, in order.
    pub(super) writes: Vec<String>,
    pub(super) events: Vec<EventRecord>,
    pub(super) measurements: Vec<Measurement>,
    pub(super) explained: Vec<AdmissionExplained>,
    pub(super) now: Timestamp,
    /// Fields of statuses that another field manager has set, by Workload: an apply keeps them.
    pub(super) foreign_fields: BTreeMap<String, Value>,
    /// Writes of jobs in flight.
    of_jobs: Vec<Ticket>,
    /// With conflicts: the writes, by purpose and name, that another client was faster than.
    conflicts: Option<BTreeSet<String>>,
    version: u64,
}

/// Shows the lists of a cluster with its queues, and with no Job and no Workload.
pub(super) fn observe_queues(control: &mut ManagerControl) {
    for input in lists() {
        let input = match input {
            ManagerInput::Workload(_) => ManagerInput::Workload(list(vec![])),
            ManagerInput::Job(..) => ManagerInput::Job(batch_job(), jobs(vec![])),
            other => other,
        };
        control.observe(input, NOW);
    }
}

impl Cluster {
    /// With the ClusterQueue `cq` of 8 cpus, the LocalQueue `lq`, and nothing else.
    pub(super) fn new() -> Self {
        Self::with(settings())
    }

    pub(super) fn with(settings: ManagerSettings) -> Self {
        let mut control = ManagerControl::new(settings);
        observe_queues(&mut control);
        Self::of(control, vec![])
    }

    /// Of a manager that has listed everything, these Workloads among it.
    pub(super) fn of(control: ManagerControl, workloads: Vec<Value>) -> Self {
        let name = |one: &Value| one["metadata"]["name"].as_str().expect("a name").to_owned();
        let workloads = workloads.into_iter().map(|one| (name(&one), one));
        Self {
            control,
            workloads: workloads.collect(),
            writes: vec![],
            events: vec![],
            measurements: vec![],
            explained: vec![],
            now: NOW,
            foreign_fields: BTreeMap::new(),
            of_jobs: vec![],
            conflicts: None,
            version: 100,
        }
    }

    /// The same, but another client writes each Workload before the first write of each purpose.
    pub(super) fn with_conflicts(self) -> Self {
        Self { conflicts: Some(BTreeSet::new()), ..self }
    }

    /// Lets so many seconds pass.
    pub(super) fn wait(&mut self, seconds: i64) -> &mut Self {
        self.now += SignedDuration::from_secs(seconds);
        self
    }

    /// Shows the manager an object.
    pub(super) fn observe(&mut self, input: ManagerInput) -> &mut Self {
        self.control.observe(input, self.now);
        self
    }

    /// Shows the manager the ClusterQueue `cq`, with these fields of its spec changed.
    pub(super) fn queue(&mut self, fields: &Value) -> &mut Self {
        self.version += 1;
        let mut spec = json!({"namespaceSelector": {}, "resourceGroups": [{
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "8"}]}],
        }]});
        json_merge(&mut spec, fields);
        let queue = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "spec": spec,
            "metadata": {
                "name": "cq", "resourceVersion": self.version.to_string(), "generation": self.version,
            },
        });
        self.observe(ManagerInput::ClusterQueue(Change::Apply(shared(queue))))
    }

    /// Shows the manager an active AdmissionCheck of another controller.
    pub(super) fn check(&mut self, name: &str) -> &mut Self {
        let check = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
            "metadata": {"name": name, "resourceVersion": "30"},
            "spec": {"controllerName": "example.com/nodes"},
            "status": {"conditions": [
                {"type": "Active", "status": "True", "reason": "Active", "message": ""},
            ]},
        });
        self.observe(ManagerInput::AdmissionCheck(Change::Apply(shared(check))))
    }

    /// A Workload is deleted.
    pub(super) fn delete(&mut self, name: &str) -> &mut Self {
        let key = Key { namespace: Some("ns".into()), name: name.into() };
        self.workloads.remove(name);
        self.observe(ManagerInput::Workload(Change::Delete(key)))
    }

    /// Writes a Workload as another client: these fields in place of the known ones, or of those of a new Workload of so
    /// many cpus.
    pub(super) fn workload(&mut self, name: &str, cpus: usize, fields: &Value) -> &mut Self {
        let mut object = self.workloads.get(name).cloned().unwrap_or_else(|| {
            let mut one = workload();
            one["metadata"] = json!({
                "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
                "creationTimestamp": self.now.to_string(),
            });
            one["spec"]["podSets"][0]["count"] = json!(cpus);
            one["status"] = json!({});
            one
        });
        json_merge(&mut object, fields);
        self.store(name, object);
        let change = Change::Apply(shared(self.workloads[name].clone()));
        self.observe(ManagerInput::Workload(change))
    }

    /// Decides and answers until nothing is written any more.
    pub(super) fn settle(&mut self) -> &mut Self {
        for _ in 0..20 {
            let step = self.control.decide(self.now);
            let rests = step.orders.is_empty();
            self.take(step);
            if rests {
                return self;
            }
        }
        panic!("the manager does not come to rest: {:?}", self.writes);
    }

    /// Answers the writes of a job that are in flight, and decides.
    pub(super) fn answer_job(&mut self, name: &str, answer: &WriteOutcome) -> &mut Self {
        let all = std::mem::take(&mut self.of_jobs).into_iter();
        let (of_job, others) = all.partition(|ticket| &*ticket.target.key.name == name);
        self.of_jobs = others;
        let of_job: Vec<Ticket> = of_job;
        for ticket in of_job {
            self.control.answered(&ticket, answer.clone(), self.now);
        }
        self.settle()
    }

    /// Accepts the writes of Workloads.
    pub(super) fn take(&mut self, step: Decisions) {
        self.events.extend(step.events);
        self.measurements.extend(step.measurements);
        self.explained.extend(step.explained);
        step.orders.into_iter().for_each(|order| self.accept(&order));
    }

    fn accept(&mut self, order: &Order) {
        let Ticket { target, purpose, .. } = &order.ticket;
        let name = target.key.name.to_string();
        if matches!(target.subject, Subject::Job(_)) && target.to == Destination::Home {
            self.of_jobs.push(order.ticket.clone());
        }
        // Writes of other objects, and those on workers, stay in flight.
        if target.subject != Subject::Workload || target.to != Destination::Home {
            return;
        }
        let write = format!("{} {name}", purpose.name());
        if self.workloads.contains_key(&name)
            && self.conflicts.as_mut().is_some_and(|known| known.insert(write.clone()))
        {
            self.conflict(&name, &order.ticket);
            return;
        }
        self.writes.push(write);
        let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
        if order.write.request().method() == "DELETE" {
            self.workloads.remove(&name);
            self.control.answered(&order.ticket, WriteOutcome::Gone, self.now);
            return;
        }
        let mut object = self.workloads.get(&name).cloned().unwrap_or_default();
        if *purpose == Purpose::Reclaim {
            json_merge(&mut object, &json!({"status": body["status"]}));
        } else if order.write.request().headers()["content-type"] == "application/merge-patch+json"
        {
            json_merge(&mut object, &body);
            if let Some(foreign) = self.foreign_fields.get_mut(&name) {
                json_merge(foreign, &body["status"]);
            }
        } else if order.write.request().uri().path().ends_with("/status") {
            let reclaimable = object["status"].get("reclaimablePods").cloned();
            object["status"] = body["status"].clone();
            json_merge(&mut object["status"], &json!({"reclaimablePods": reclaimable}));
            let kept = self.foreign_fields.get(&name).cloned().unwrap_or(json!({}));
            json_merge(&mut object["status"], &kept);
        } else {
            json_merge(&mut object, &body);
        }
        // A write that changes nothing makes no version.
        if self.workloads.get(&name) != Some(&object) {
            self.store(&name, object);
        }
        let answer = WriteOutcome::done(self.workloads[&name].clone());
        self.control.answered(&order.ticket, answer, self.now);
    }

    /// Another client was faster: the write is refused, and the watch shows the newer version.
    fn conflict(&mut self, name: &str, ticket: &Ticket) {
        self.control.answered(ticket, WriteOutcome::Stale, self.now);
        let object = self.workloads[name].clone();
        self.store(name, object);
        let change = Change::Apply(shared(self.workloads[name].clone()));
        self.control.observe(ManagerInput::Workload(change), self.now);
    }

    /// A Workload has changed.
    pub(super) fn store(&mut self, name: &str, mut object: Value) {
        self.version += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.version.to_string());
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{name}"));
        }
        self.workloads.insert(name.to_owned(), object);
    }

    /// A condition of a Workload: status, reason and message.
    pub(super) fn condition(&self, name: &str, condition: &str) -> String {
        let all = self.workloads[name]["status"]["conditions"].as_array();
        let one = all.into_iter().flatten().find(|one| one["type"] == condition);
        let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
        one.map_or("none".to_owned(), |one| {
            format!("{} {}: {}", text(one, "status"), text(one, "reason"), text(one, "message"))
        })
    }

    /// Events with their reporter, since the last call.
    pub(super) fn take_events(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        let one = |event: EventRecord| {
            let controller = event.controller.unwrap_or_default();
            format!("{} {controller} {}: {}", event.regarding.key.name, event.reason, event.note)
        };
        events.into_iter().map(one).collect()
    }

    /// Writes since the last call.
    pub(super) fn take_writes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.writes)
    }
}

/// A JSON merge patch.
pub(super) fn json_merge(target: &mut Value, patch: &Value) {
    let (Some(target), Some(patch)) = (target.as_object_mut(), patch.as_object()) else {
        *target = patch.clone();
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            json_merge(target.entry(name.clone()).or_insert(json!({})), value);
        }
    }
}
