//! Pods of clones run on the nodes that the agent counted them on (docs/reference/dispatch.md §4).
//!
//! The API server of the worker accepts every write. Its scheduler takes, for each pod, the first node in the order of a test that
//! has room and that the pod allows.

use super::*;

const HOST: &str = "kubernetes.io/hostname";

/// A worker cluster with its agent.
pub(super) struct Worker {
    pub(super) control: AgentControl,
    pub(super) clones: BTreeMap<String, Value>,
    pub(super) jobs: BTreeMap<String, Value>,
    /// Cpus of each node.
    nodes: Vec<(&'static str, i64)>,
    /// Cpus of bound pods, by node.
    taken: BTreeMap<String, i64>,
    pub(super) version: u64,
    /// Reasons of Events.
    events: Vec<String>,
}

impl Worker {
    pub(super) fn new(nodes: &[(&'static str, i64)]) -> Self {
        Self::with(AgentSettings::new(AgentPolicy::default(), &kinds().handled), nodes)
    }

    pub(super) fn with(settings: AgentSettings, nodes: &[(&'static str, i64)]) -> Self {
        let mut worker = Self {
            control: AgentControl::new(settings),
            clones: BTreeMap::new(),
            jobs: BTreeMap::new(),
            nodes: nodes.to_vec(),
            taken: BTreeMap::new(),
            version: 100,
            events: Vec::new(),
        };
        worker.list(vec![]);
        worker
    }

    /// What an agent lists when it starts, with these pods.
    pub(super) fn list(&mut self, pods: Vec<Value>) {
        let node = |(name, cpus): &(&str, i64)| {
            json!({
                "metadata": {"name": name, "resourceVersion": "1", "labels": {HOST: name, "pool": "a100"}},
                "status": {
                    "allocatable": {"cpu": cpus.to_string(), "pods": "10"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            })
        };
        let nodes = self.nodes.iter().map(node).collect();
        for input in [
            AgentInput::LimitRange(list(vec![])),
            AgentInput::RuntimeClass(list(vec![])),
            AgentInput::Node(list(nodes)),
            AgentInput::Pod(list(pods)),
            AgentInput::Capacity(list(vec![])),
            AgentInput::Lease(list(vec![])),
            AgentInput::Job(batch_job(), jobs(self.jobs.values().cloned().collect())),
            AgentInput::Workload(list(self.clones.values().cloned().collect())),
        ] {
            self.control.observe(input, NOW);
        }
    }

    /// The manager makes a clone of `pods` pods of so many cpus, and its Job.
    pub(super) fn dispatch(&mut self, name: &str, pods: i64, cpus: i64, fields: &Value) {
        self.dispatch_as(name, (pods, cpus), fields, &json!({}));
    }

    /// The same with further fields of the clone.
    pub(super) fn dispatch_as(
        &mut self,
        name: &str,
        (pods, cpus): (i64, i64),
        fields: &Value,
        of_clone: &Value,
    ) {
        let mut job = json!(job());
        job["metadata"]["name"] = json!(name);
        job["metadata"]["uid"] = json!(format!("uid-{name}"));
        job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/prebuilt-workload-name": name});
        job["spec"]["parallelism"] = json!(pods);
        let spec = &mut job["spec"]["template"]["spec"];
        spec["containers"][0]["resources"]["requests"]["cpu"] = json!(cpus.to_string());
        cluster::json_merge(spec, fields);
        let sets = object::<Job>(job.clone()).pod_sets(::jobs::JobGates::default());
        let mut clone = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {
                "name": name, "namespace": "ns", "uid": format!("wl-{name}"),
                "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
                "annotations": {
                    "sluice.dev/assignment": "{\"main\":{}}",
                    "kueue.x-k8s.io/job-owner-gvk": "batch/v1, Kind=Job",
                },
            },
            "spec": {"priority": 0, "podSets": sets}, "status": {},
        });
        cluster::json_merge(&mut clone, of_clone);
        self.store(name, clone, job);
        let job = Arc::new(batch_job().decode(self.jobs[name].clone()).expect("a Job"));
        self.control.observe(AgentInput::Job(batch_job(), Change::Apply(job)), NOW);
        let clone = shared(self.clones[name].clone());
        self.control.observe(AgentInput::Workload(Change::Apply(clone)), NOW);
    }

    pub(super) fn store(&mut self, name: &str, clone: Value, job: Value) {
        for (all, mut object) in [(&mut self.clones, clone), (&mut self.jobs, job)] {
            self.version += 1;
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            all.insert(name.to_owned(), object);
        }
    }

    /// Decides and answers until nothing is written any more.
    pub(super) fn settle(&mut self) {
        self.settle_at(NOW);
    }

    /// The same at another time.
    pub(super) fn settle_at(&mut self, now: Timestamp) {
        for _ in 0..20 {
            let Decisions { orders, events, .. } = self.control.decide(now);
            self.events.extend(events.into_iter().map(|event| event.reason));
            if orders.is_empty() {
                return;
            }
            orders.iter().for_each(|order| self.accept(order));
        }
        panic!("the agent does not come to rest");
    }

    pub(super) fn accept(&mut self, order: &Order) {
        let Ticket { target, purpose, .. } = &order.ticket;
        let body: Value = serde_json::from_slice(order.write.request().body()).unwrap_or_default();
        let objects = match &target.subject {
            Subject::Workload => &mut self.clones,
            Subject::Job(_) => &mut self.jobs,
            // Other writes stay in flight.
            _ => return,
        };
        let object = objects.get_mut(&*target.key.name).expect("it exists");
        if *purpose == Purpose::Refuse {
            // Applied by a field manager of its own, beside the other conditions.
            let mut conditions =
                object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions
                .extend(body["status"]["conditions"].as_array().into_iter().flatten().cloned());
            object["status"]["conditions"] = json!(conditions);
        } else if order.write.request().uri().path().ends_with("/status") {
            let refused = object["status"]["conditions"].as_array().into_iter().flatten();
            let refused = refused.filter(|one| one["type"] == "sluice.dev/Refused").cloned();
            let refused: Vec<Value> = refused.collect();
            object["status"] = body["status"].clone();
            if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
                conditions.extend(refused);
            }
        } else {
            cluster::json_merge(object, &body);
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let answer = WriteOutcome::done(object.clone());
        self.control.answered(&order.ticket, answer, NOW);
    }

    /// The status of a clone changes.
    pub(super) fn clone_status(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let (mut clone, job) = (self.clones[name].clone(), self.jobs[name].clone());
        change(&mut clone["status"]);
        self.store(name, clone, job);
        let clone = shared(self.clones[name].clone());
        self.control.observe(AgentInput::Workload(Change::Apply(clone)), NOW);
    }

    /// A bound pod is gone.
    pub(super) fn pod_ends(&mut self, name: &str) {
        let gone = Key { namespace: Some("ns".into()), name: name.into() };
        self.control.observe(AgentInput::Pod(Change::Delete(gone)), NOW);
    }

    /// A clone is finished.
    pub(super) fn clone_ends(&mut self, name: &str) {
        self.clone_status(name, |status| {
            let conditions = status["conditions"].as_array_mut().expect("conditions");
            conditions.push(json!({
                "type": "Finished", "status": "True", "reason": "Succeeded", "message": "",
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            }));
        });
    }

    pub(super) fn is_started(&self, name: &str) -> bool {
        self.jobs[name]["spec"]["suspend"] == json!(false)
    }

    /// Binds the pods of a started job to the first nodes of `order` that take them. Returns their number on each node.
    pub(super) fn bind(&mut self, name: &str, order: &[&str]) -> BTreeMap<String, i64> {
        let job = &self.jobs[name]["spec"];
        let template = job["template"].clone();
        let pods = job["parallelism"].as_i64().expect("a number");
        let cpus = &template["spec"]["containers"][0]["resources"]["requests"]["cpu"];
        let cpus: i64 = cpus.as_str().expect("a quantity").parse().expect("whole cpus");
        let mut bound = BTreeMap::new();
        for number in 0..pods {
            let room = |node: &&&str| {
                let size = self.nodes.iter().find(|one| one.0 == **node).map_or(0, |one| one.1);
                let taken = self.taken.get(**node).copied().unwrap_or_default();
                allows(&template["spec"], node) && size - taken >= cpus
            };
            let Some(node) = order.iter().find(room) else { continue };
            *self.taken.entry((*node).to_owned()).or_default() += cpus;
            *bound.entry((*node).to_owned()).or_default() += 1;
            let mut pod = template.clone();
            pod["metadata"]["namespace"] = json!("ns");
            pod["metadata"]["name"] = json!(format!("{name}-{number}"));
            pod["metadata"]["resourceVersion"] = json!("5");
            pod["spec"]["nodeName"] = json!(node);
            pod["status"] = json!({"phase": "Running"});
            self.control.observe(AgentInput::Pod(Change::Apply(shared(pod))), NOW);
        }
        bound
    }
}

/// Whether node selector and required node affinity allow a node that has its name as a label.
fn allows(spec: &Value, node: &str) -> bool {
    let selected = spec["nodeSelector"].get(HOST).is_none_or(|host| host == node);
    let terms = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let one_of = |term: &Value| {
        let wanted = term["matchExpressions"].as_array().cloned().unwrap_or_default();
        wanted.iter().all(|one| {
            one["key"] != HOST || one["values"].as_array().expect("a list").contains(&json!(node))
        })
    };
    let terms = terms["nodeSelectorTerms"].as_array();
    selected && terms.is_none_or(|terms| terms.iter().any(one_of))
}

#[test]
fn a_pod_cannot_take_the_room_that_was_counted_for_another_one() {
    let mut worker = Worker::new(&[("n1", 4), ("n2", 2)]);
    // Either node would take `a`; `b` needs the first.
    worker.dispatch("a", 1, 2, &json!({}));
    worker.dispatch("b", 1, 3, &json!({}));
    worker.settle();
    assert!(worker.is_started("a") && worker.is_started("b"), "both fit");
    assert_eq!(worker.events, ["Started", "Started"], "the queue is in no API");
    assert_eq!(worker.bind("a", &["n1", "n2"]), [("n2".to_owned(), 1)].into());
    assert_eq!(worker.bind("b", &["n1", "n2"]), [("n1".to_owned(), 1)].into());
}

/// The hosts that the pods of a started Job may run on, term by term; `None` without required node affinity.
fn hosts(job: &Value) -> Option<Vec<Value>> {
    let required = &job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
    let terms = &required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    let last = |term: &Value| {
        let last = term["matchExpressions"].as_array().and_then(|all| all.last()).cloned();
        last.unwrap_or_default()["values"].clone()
    };
    Some(terms.as_array()?.iter().map(last).collect())
}

#[test]
fn pods_of_several_nodes_keep_their_own_affinity_beside_the_assigned_one() {
    let mut worker = Worker::new(&[("n1", 2), ("n2", 2), ("n3", 2)]);
    let linux = |os: &str| {
        json!({"matchExpressions": [
            {"key": "kubernetes.io/os", "operator": "NotIn", "values": [os]},
        ]})
    };
    let terms = json!({"nodeSelectorTerms": [linux("windows"), linux("plan9")]});
    worker.dispatch("plain", 2, 2, &json!({}));
    worker.settle();
    let plain = hosts(&worker.jobs["plain"]).expect("an affinity");
    assert_eq!(plain, [json!(["n1", "n2"])]);
    let sum: i64 = worker.bind("plain", &["n2", "n3", "n1"]).values().sum();
    assert_eq!(sum, 2);
    worker.dispatch(
        "own",
        1,
        2,
        &json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": terms,
        }}}),
    );
    worker.settle();
    let own = &worker.jobs["own"]["spec"]["template"]["spec"];
    assert_eq!(own["nodeSelector"][HOST], "n3", "a single node is selected");
    let kept = &own["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(*kept, terms);
}

#[test]
fn a_clone_waits_for_nodes_that_others_are_being_bound_to() {
    let mut worker = Worker::new(&[("n1", 3), ("n2", 3)]);
    worker.dispatch("one", 1, 1, &json!({}));
    worker.settle();
    worker.dispatch("gang", 2, 2, &json!({}));
    worker.settle();
    assert!(worker.is_started("one") && !worker.is_started("gang"), "it could take the room");
    assert_eq!(worker.bind("one", &["n2", "n1"]), [("n1".to_owned(), 1)].into());
    worker.settle();
    assert!(worker.is_started("gang"));
    assert_eq!(worker.bind("gang", &["n1", "n2"]).len(), 2);
}

#[test]
fn an_agent_that_starts_again_counts_pods_where_they_were_assigned() {
    let mut worker = Worker::new(&[("n1", 4), ("n2", 3)]);
    worker.dispatch("first", 1, 3, &json!({}));
    worker.settle();
    assert_eq!(worker.jobs["first"]["spec"]["template"]["spec"]["nodeSelector"][HOST], "n2");
    let settings = AgentSettings::new(AgentPolicy::default(), &kinds().handled);
    worker.control = AgentControl::new(settings);
    worker.list(vec![]);
    worker.dispatch("second", 1, 3, &json!({}));
    worker.settle();
    assert_eq!(worker.bind("second", &["n2", "n1"]), [("n1".to_owned(), 1)].into());
    assert_eq!(worker.bind("first", &["n1", "n2"]), [("n2".to_owned(), 1)].into());
}

#[test]
fn the_scheduler_chooses_nodes_for_pods_that_keep_apart() {
    let mut worker = Worker::new(&[("n1", 4), ("n2", 4)]);
    let apart = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST}],
    }}});
    worker.dispatch("apart", 2, 2, &apart);
    worker.settle();
    assert!(worker.is_started("apart"));
    let spec = &worker.jobs["apart"]["spec"]["template"]["spec"];
    assert_eq!((spec.get("nodeSelector"), hosts(&worker.jobs["apart"])), (None, None));
}

#[test]
fn an_evicted_clone_gives_its_nodes_back_and_its_job_loses_them() {
    let mut worker = Worker::new(&[("n1", 2), ("n2", 2)]);
    worker.dispatch("gang", 2, 2, &json!({}));
    worker.settle();
    assert!(hosts(&worker.jobs["gang"]).is_some());
    let mut clone = worker.clones["gang"].clone();
    clone["status"] = json!({"conditions": [{
        "type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }], "requeueState": {"requeueAt": "2030-01-01T00:00:00Z", "count": 1}});
    clone["spec"]["active"] = json!(false);
    let job = worker.jobs["gang"].clone();
    worker.store("gang", clone, job);
    let clone = shared(worker.clones["gang"].clone());
    worker.control.observe(AgentInput::Workload(Change::Apply(clone)), NOW);
    worker.settle();
    assert!(!worker.is_started("gang"));
    assert_eq!(hosts(&worker.jobs["gang"]), None);
    worker.dispatch("next", 2, 2, &json!({}));
    worker.settle();
    assert!(worker.is_started("next"));
}
