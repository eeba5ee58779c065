//! Pod sets of a declared job whose templates stand in other objects.

use super::{
    DeclaredJob, components,
    declared_job::Unresolved,
    declared_pod_set::DeclaredPodSet,
    live_cluster::LiveCluster,
    pod_sets::{self, PodSetsError},
};
use kube_core::DynamicObject;

use crate::lookups::{FoundObjects, LookupFailure, LookupRule, NeededObject};

/// An object that the job names, with the name of its rule.
type Source<'a> = (String, NeededObject, &'a DynamicObject);

/// Why a job has no pod sets.
enum ReadError {
    Unresolved(Unresolved),
    /// A pod template does not decode.
    Undecodable(String),
}

impl From<Unresolved> for ReadError {
    fn from(unresolved: Unresolved) -> Self {
        Self::Unresolved(unresolved)
    }
}

impl From<String> for ReadError {
    fn from(error: String) -> Self {
        Self::Undecodable(error)
    }
}

impl From<PodSetsError> for ReadError {
    fn from(error: PodSetsError) -> Self {
        match error {
            PodSetsError::Template(error) => Self::Undecodable(error),
            wrong => Unresolved::Contradiction(wrong.to_string()).into(),
        }
    }
}

fn unnamed(lookup: &str) -> Unresolved {
    Unresolved::Contradiction(format!("the job names no {lookup}"))
}

impl DeclaredJob {
    /// The objects that the job needs, each with its rule.
    pub(super) fn needed(&self) -> Vec<(&LookupRule, NeededObject)> {
        let namespace = self.metadata.namespace.as_deref();
        let rules = self.kind.lookups().iter();
        rules.filter_map(|rule| Some((rule, rule.needed(&self.object, namespace)?))).collect()
    }

    /// Why a new job is refused: it names an object that is required and was not found.
    pub(crate) fn refusal_without(&self, found: &FoundObjects) -> Option<String> {
        let needed = self.needed();
        needed.iter().filter(|(rule, _)| rule.required).find_map(|(rule, needed)| {
            // What cannot be read proves nothing.
            (found.get(needed).err()? == LookupFailure::Absent).then(|| rule.refusal(needed))
        })
    }

    /// Reads the pod sets. A job that names a missing object or contradicts itself has none.
    ///
    /// # Errors
    /// If a pod template does not decode.
    pub(super) fn resolve(&mut self, found: &FoundObjects) -> Result<(), String> {
        (self.pod_sets, self.live_cluster, self.unresolved) = (Vec::new(), None, None);
        match self.read(found) {
            Ok((pod_sets, live_cluster)) => {
                (self.pod_sets, self.live_cluster) = (pod_sets, live_cluster);
                Ok(())
            }
            Err(ReadError::Unresolved(unresolved)) => {
                self.unresolved = Some(unresolved);
                Ok(())
            }
            Err(ReadError::Undecodable(error)) => Err(error),
        }
    }

    /// The objects that were found, each with its rule.
    fn sources<'a>(&self, found: &'a FoundObjects) -> Result<Vec<Source<'a>>, ReadError> {
        let mut sources = Vec::new();
        for (rule, needed) in self.needed() {
            match found.get(&needed) {
                Ok(object) => sources.push((rule.name.clone(), needed, &**object)),
                Err(_) if rule.optional => {}
                // All pod sets or none: a Workload of some of them would be admitted for too little.
                Err(failure) => {
                    return Err(Unresolved::Missing(failure.message(&needed)).into());
                }
            }
        }
        Ok(sources)
    }

    fn read(
        &self,
        found: &FoundObjects,
    ) -> Result<(Vec<DeclaredPodSet>, Option<LiveCluster>), ReadError> {
        let sources = self.sources(found)?;
        let mut pod_sets = self.pod_sets_by_rules(&sources)?;
        let fields = self.fields();
        let name = self.metadata.name.as_deref().unwrap_or_default();
        if let Some(at) = fields.and_then(|fields| fields.components.as_ref()) {
            // No schema checks a wrapped object. The job stays readable: its finalizers are removed, and an event names the field.
            let sets = components::wrapped_pod_sets(at, &self.object, name);
            pod_sets.extend(sets.map_err(|error| Unresolved::Contradiction(error.to_string()))?);
        }
        if let Some(training) = self.training() {
            let (.., runtime) = sources.first().ok_or_else(|| unnamed("runtime"))?;
            pod_sets.extend(training.pod_sets(&self.object, name, &runtime.data)?);
        }
        if let Some(spark) = self.spark() {
            pod_sets.extend(spark.pod_sets(&self.object)?);
        }
        pod_sets.extend(self.group_pod_set()?);
        // Last, because upstream has the pod set of the submitter behind those of the groups
        // (docs/reference/kueue.md §7.8).
        let Some(ray) = self.ray() else { return Ok((pod_sets, None)) };
        ray.place_fields(&mut pod_sets);
        pod_sets.extend(ray.submitter(&self.object)?);
        let live = sources.iter().find(|one| ray.live.as_ref() == Some(&one.0));
        let groups = fields.and_then(|one| one.pod_sets.iter().find(|rule| rule.each.is_some()));
        let live_cluster = live
            .zip(groups)
            .map(|((.., cluster), rule)| LiveCluster::of(cluster, |group| rule.count(group).ok()));
        Ok((pod_sets, live_cluster))
    }

    fn pod_sets_by_rules(&self, sources: &[Source<'_>]) -> Result<Vec<DeclaredPodSet>, ReadError> {
        let rules = self.fields().map(|fields| fields.pod_sets.as_slice()).unwrap_or_default();
        pod_sets::check_keys(rules, &self.object)?;
        let mut pod_sets = Vec::new();
        for rule in rules {
            let Some(from) = &rule.from else {
                pod_sets.extend(rule.pod_sets(&self.object, None)?);
                continue;
            };
            let source = sources.iter().find(|one| one.0 == from.lookup);
            let (_, needed, object) = source.ok_or_else(|| unnamed(&from.lookup))?;
            let sets = rule.pod_sets(&self.object, Some(&object.data));
            pod_sets.extend(sets.map_err(|error| match error {
                PodSetsError::Template(error) => format!("{needed}: {error}").into(),
                wrong => ReadError::from(wrong),
            })?);
        }
        Ok(pod_sets)
    }

    /// Removes what a start has added to templates of other objects, also while these are missing.
    pub(super) fn remove_additions(&mut self) -> bool {
        let rules = self.fields().map(|fields| fields.pod_sets.as_slice()).unwrap_or_default();
        let fields: Vec<_> = rules.iter().flat_map(|rule| rule.additions(&self.object)).collect();
        let mut changed = false;
        if let Some(at) = self.fields().and_then(|fields| fields.components.clone()) {
            changed |= components::remove_infos(&at, &mut self.object);
        }
        for field in fields {
            changed |= field.remove(&mut self.object);
        }
        if let Some(training) = self.training().cloned() {
            changed |= training.remove_additions(&mut self.object);
        }
        for set in &mut self.pod_sets {
            if let Some(base) = &set.base {
                set.template = base.clone();
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crds::v1beta2::Workload;
    use serde_json::{Value, json};

    use super::*;
    use crate::pod_sets_info::AssignedFlavors;
    use crate::{
        GenericJob, JobGates, JobObject, Kind,
        construct_workload::{KeysToCopy, WorkloadPriority, construct_workload},
        generic_job::Stop,
        pod_set_info::PodSetInfo,
        reconcile::{JobStep, ReconcileContext, ReconcileStep, WorkloadStep, reconcile},
    };

    const COURSE: &str = "
framework: example.com/course
group: example.com
version: v1
kind: Course
plural: courses
suspend: /spec/suspend
lookups:
- { name: recipe, group: example.com, version: v1, kind: Recipe, plural: recipes, at: /spec/recipe }
fields:
  podSets:
  - name: { fixed: worker }
    template: /spec/worker
    from: { lookup: recipe, additions: /spec/additions }
    replicas: { at: /spec/size }
  active: { anyAbove: [/status/active] }
";

    fn kind() -> Kind {
        Kind::parse(COURSE).expect("a kind")
    }

    fn course() -> JobObject {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Course",
            "metadata": { "name": "c", "namespace": "ns", "uid": "u" },
            "spec": { "suspend": true, "recipe": "base", "size": 2 },
        });
        kind().decode(object).expect("a Course decodes")
    }

    fn found(image: &str) -> FoundObjects {
        let needed = course().needed_objects().pop().expect("an object");
        let object = json!({
            "metadata": { "name": "base", "namespace": "ns" },
            "spec": { "worker": { "spec": {
                "nodeSelector": { "a": "b" }, "containers": [{ "name": "c", "image": image }],
            } } },
        });
        let mut found = FoundObjects::default();
        found.observe(needed, Some(Arc::new(serde_json::from_value(object).expect("an object"))));
        found
    }

    fn workload_of(job: &JobObject) -> Workload {
        let gates = JobGates::default();
        construct_workload(job, WorkloadPriority::default(), &KeysToCopy::default(), gates)
    }

    fn steps(job: &JobObject, workloads: &[&Workload]) -> Vec<ReconcileStep<JobObject>> {
        let flavors = Default::default();
        reconcile(
            job,
            ReconcileContext {
                workloads,
                previous_workload: None,
                prebuilt: false,
                flavors: AssignedFlavors::Own(&flavors),
                gates: JobGates::default(),
                now: jiff::Timestamp::UNIX_EPOCH,
            },
        )
    }

    fn with_conditions(mut workload: Workload, conditions: &[&str]) -> Workload {
        let conditions = conditions.iter().map(|name| {
            json!({ "type": name, "status": "True", "reason": "R", "message": "",
                    "lastTransitionTime": "1970-01-01T00:00:00Z" })
        });
        let conditions = Value::Array(conditions.collect());
        workload.status.conditions = serde_json::from_value(conditions).expect("conditions");
        workload
    }

    fn start_of(job: &JobObject) -> JobObject {
        let mut started = job.clone();
        let mut info = PodSetInfo::of(&job.pod_sets(JobGates::default())[0]);
        info.node_selector = [("zone".to_owned(), "x".to_owned())].into();
        info.labels = [("podset".to_owned(), "worker".to_owned())].into();
        started.run_with_pod_sets_info(&[info], JobGates::default()).expect("starts");
        started
    }

    #[test]
    fn a_template_stands_in_another_object_and_the_additions_in_the_job() {
        let job = course().with_objects(&found("one"));
        let set = job.pod_sets(JobGates::default()).remove(0);
        assert_eq!((set.name.as_str(), set.count), ("worker", Some(2)));
        assert_eq!(json!(set.template)["spec"]["containers"][0]["image"], "one");

        let started = start_of(&job);
        assert_eq!(
            started.without_status()["spec"],
            json!({
                "suspend": false, "recipe": "base", "size": 2,
                "additions": {
                    "metadata": { "labels": { "podset": "worker" } },
                    "spec": { "nodeSelector": { "zone": "x" } },
                },
            })
        );
        // The stored object, read again, has the same pod sets.
        let mut object = started.to_create();
        object["metadata"] = json!(started.metadata());
        let again = kind().decode(object).expect("decodes").with_objects(&found("one"));
        let gates = JobGates::default();
        assert_eq!(again.pod_sets(gates), started.pod_sets(gates));
        let template = json!(again.pod_sets(gates)[0].template);
        assert_eq!(template["spec"]["nodeSelector"], json!({ "a": "b", "zone": "x" }));
        // Also while the other object is missing.
        for stopped in [again, kind().decode(started.to_create()).expect("decodes")] {
            let stop = stopped.next_stop_write(&Stop::default(), gates);
            let Some(crate::StopWrite::Object(stopped)) = stop else {
                panic!("a stop is a write of the object")
            };
            assert_eq!(stopped.without_status(), job.without_status());
        }
    }

    #[test]
    fn a_job_without_its_object_gets_no_workload_and_says_why() {
        let [ReconcileStep::Refuse { reason, message }] = &steps(&course(), &[])[..] else {
            panic!("a refusal")
        };
        assert_eq!(*reason, "NeededObjectMissing");
        assert_eq!(message, "Recipe.example.com \"base\" does not exist");
        let complete = course().with_objects(&found("one"));
        assert_eq!(steps(&complete, &[]), [ReconcileStep::CreateWorkload]);
        let object = json!({ "metadata": { "namespace": "ns" }, "spec": { "suspend": true } });
        let nameless = kind().decode(object).expect("decodes");
        assert_eq!(nameless.unresolved(), Some("the job names no recipe"));
        // No object is missing.
        let refused = steps(&nameless, &[]);
        assert!(
            matches!(refused[..], [ReconcileStep::Refuse { reason: "ErrWorkloadCompose", .. }]),
            "{refused:?}"
        );
    }

    #[test]
    fn replicas_of_an_unknown_type_are_named() {
        let kinds = crate::Kinds::built_in();
        let kind = kinds.find("kubeflow.org/v1", "PyTorchJob").expect("built in");
        let why = |replicas: Value| {
            let object = json!({
                "metadata": { "name": "p", "namespace": "ns", "uid": "u" },
                "spec": { "runPolicy": { "suspend": true }, "pytorchReplicaSpecs": replicas },
            });
            let job = kind.decode(object).expect("it decodes");
            match steps(&job, &[]).remove(0) {
                ReconcileStep::Refuse { reason: "ErrWorkloadCompose", message } => message,
                other => format!("{other:?}"),
            }
        };
        let replicas = json!({ "template": { "spec": { "containers": [] } } });
        let unknown = "spec.pytorchReplicaSpecs has unknown keys: worker; known are Master, Worker";
        assert_eq!(why(json!({ "Master": replicas, "worker": replicas })), unknown);
        assert_eq!(why(json!({ "worker": replicas })), unknown);
        assert_eq!(why(json!({ "Master": replicas, "worker": null })), "CreateWorkload");
        assert_eq!(why(json!({})), "the job has no pod sets; at least one is needed");
    }

    #[test]
    fn a_job_without_pod_sets_gets_no_workload() {
        let wrapper = |component: Value| {
            let object = json!({
                "metadata": { "name": "w", "namespace": "ns", "uid": "u" },
                "spec": { "suspend": true, "components": [{ "template": component }] },
            });
            let kinds = crate::Kinds::built_in();
            let kind =
                kinds.find("workload.codeflare.dev/v1beta2", "AppWrapper").expect("built in");
            kind.decode(object).expect("it decodes")
        };
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": [] } });
        let (with_pod, empty) =
            (wrapper(pod), wrapper(json!({ "apiVersion": "v1", "kind": "Service" })));
        assert_eq!(steps(&with_pod, &[]), [ReconcileStep::CreateWorkload]);
        let refused = ReconcileStep::Refuse {
            reason: "ErrWorkloadCompose",
            message: "the job has no pod sets; at least one is needed".to_owned(),
        };
        assert_eq!(steps(&empty, &[]), [refused]);
        let former = workload_of(&with_pod);
        let delete = ReconcileStep::Workload {
            name: former.metadata.name.clone().expect("a name"),
            write: WorkloadStep::Delete,
        };
        assert_eq!(steps(&empty, &[&former]), [delete]);
    }

    #[test]
    fn an_object_that_goes_changes_nothing_about_a_running_job() {
        let complete = course().with_objects(&found("one"));
        let workload = workload_of(&complete);
        let running = start_of(&complete).with_objects(&FoundObjects::default());
        assert!(running.unresolved().is_some());
        let admitted = with_conditions(workload.clone(), &["QuotaReserved", "Admitted"]);
        assert_eq!(steps(&running, &[&admitted]), []);
        let evicted = with_conditions(workload.clone(), &["QuotaReserved", "Evicted"]);
        assert!(matches!(
            steps(&running, &[&evicted])[..],
            [ReconcileStep::Job(JobStep::Stop(..))]
        ));
        // It is not started without the object.
        let waiting = course();
        assert!(matches!(steps(&waiting, &[&admitted])[..], [ReconcileStep::Refuse { .. }]));
        assert_eq!(steps(&waiting, &[&workload]), [], "the Workload stays in its queue");
    }

    #[test]
    fn another_template_changes_a_waiting_workload() {
        let workload = workload_of(&course().with_objects(&found("one")));
        let changed = course().with_objects(&found("two"));
        let [ReconcileStep::UpdateWorkload(after)] = &steps(&changed, &[&workload])[..] else {
            panic!("an update")
        };
        assert_eq!(
            json!(after.spec.pod_sets)[0]["template"]["spec"]["containers"][0]["image"],
            "two"
        );
    }

    #[test]
    fn a_definition_that_looks_up_nothing_is_refused() {
        for (from, to, part) in [
            ("lookup: recipe", "lookup: other", "no lookup is called other"),
            ("at: /spec/recipe }", "at: /spec/* }", "more than one field"),
            ("additions: /spec/additions", "additions: /spec/*", "podSets.from.additions"),
        ] {
            let error = Kind::parse(&COURSE.replace(from, to)).expect_err(to).to_string();
            assert!(error.contains(part), "{to}: {error}");
        }
    }
}
