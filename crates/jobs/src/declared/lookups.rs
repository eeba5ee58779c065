//! Pod sets of a declared job whose templates stand in other objects.

use kube_core::DynamicObject;

use super::{
    components,
    declared_object::DeclaredObject,
    declared_pod_set::DeclaredPodSet,
    grouped_pods,
    live_cluster::LiveCluster,
    pod_sets::{self, PodSetsError},
};
use crate::lookups::{FoundObjects, LookupFailure, LookupRule, NeededObject};

/// The pod sets of a job, as far as the objects that they need were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ResolvedPodSets {
    /// Empty while the job is unresolved.
    pub(super) pod_sets: Vec<DeclaredPodSet>,
    pub(super) unresolved: Option<Unresolved>,
    /// The RayCluster that the operator has made of the job, if its autoscaler changes its size.
    pub(super) live_cluster: Option<LiveCluster>,
}

/// Why the pod sets of a job are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// An object is missing, or cannot be read, that they need.
    Missing(String),
    /// The job contradicts itself. Only a change of it mends that.
    Contradiction(String),
}

impl ResolvedPodSets {
    /// Those of an unresolved job.
    pub(super) fn without(unresolved: Unresolved) -> Self {
        Self { unresolved: Some(unresolved), ..Self::default() }
    }

    /// Reads the pod sets. A job that names a missing object or contradicts itself has none.
    ///
    /// # Errors
    /// If a pod template does not decode.
    pub(super) fn read(job: DeclaredObject<'_>, found: &FoundObjects) -> Result<Self, String> {
        match resolve(job, found) {
            Ok(resolved) => Ok(resolved),
            Err(NoPodSets::Unresolved(unresolved)) => Ok(Self::without(unresolved)),
            Err(NoPodSets::Undecodable(error)) => Err(error),
        }
    }

    /// Removes from the templates of other objects what a start has added.
    pub(super) fn remove_additions(&mut self) {
        for set in &mut self.pod_sets {
            if let Some(base) = &set.base {
                set.template = base.clone();
            }
        }
    }
}

/// Why a job has no pod sets.
enum NoPodSets {
    Unresolved(Unresolved),
    /// A pod template does not decode.
    Undecodable(String),
}

impl From<String> for NoPodSets {
    fn from(error: String) -> Self {
        Self::Undecodable(error)
    }
}

impl From<PodSetsError> for NoPodSets {
    fn from(error: PodSetsError) -> Self {
        match error {
            PodSetsError::Template(error) => Self::Undecodable(error),
            wrong => Self::contradiction(wrong.to_string()),
        }
    }
}

impl NoPodSets {
    fn contradiction(message: String) -> Self {
        Self::Unresolved(Unresolved::Contradiction(message))
    }

    fn unnamed(lookup: &str) -> Self {
        Self::contradiction(format!("the job names no {lookup}"))
    }
}

/// The pod sets of an unresolved job with a template in it that can be read. A stop restores these; their counts mean nothing.
pub(super) fn restorable(job: DeclaredObject<'_>) -> Vec<DeclaredPodSet> {
    let rules = job.fields().into_iter().flat_map(|fields| &fields.pod_sets);
    let mut restorable: Vec<_> = rules.flat_map(|rule| rule.restorable(job.object)).collect();
    let ray = job.fields().and_then(|fields| fields.ray.as_ref());
    // A template that does not decode has nothing to restore.
    restorable.extend(ray.and_then(|ray| ray.submitter(job.object).ok().flatten()));
    restorable
}

/// A found object, with the name of its lookup.
struct PodSetSource<'a> {
    lookup: String,
    needed: NeededObject,
    object: &'a DynamicObject,
}

/// The objects that a job needs, each with its rule.
pub(super) fn needed(job: DeclaredObject<'_>) -> Vec<(&LookupRule, NeededObject)> {
    let namespace = job.metadata.namespace.as_deref();
    let rules = job.kind.lookups().iter();
    rules.filter_map(|rule| Some((rule, rule.needed(job.object, namespace)?))).collect()
}

/// Why a new job is refused: it names an object that is required and was not found.
pub(super) fn refusal_without(job: DeclaredObject<'_>, found: &FoundObjects) -> Option<String> {
    let needed = needed(job);
    needed.iter().filter(|(rule, _)| rule.required).find_map(|(rule, needed)| {
        // What cannot be read proves nothing.
        (found.get(needed).err()? == LookupFailure::Absent).then(|| rule.refusal(needed))
    })
}

fn resolve(job: DeclaredObject<'_>, found: &FoundObjects) -> Result<ResolvedPodSets, NoPodSets> {
    let sources = sources(job, found)?;
    let mut pod_sets = declared_sets(job, &sources)?;
    pod_sets.extend(wrapped_sets(job)?);
    pod_sets.extend(rendered_sets(job, &sources)?);
    let fields = job.fields();
    if let Some(spark) = fields.and_then(|fields| fields.spark.as_ref()) {
        pod_sets.extend(spark.pod_sets(job.object)?);
    }
    pod_sets.extend(grouped_pods::pod_set(job.kind, job.object)?);
    // Last, because upstream has the pod set of the submitter behind those of the groups
    // (docs/reference/kueue.md §7.8).
    if let Some(ray) = fields.and_then(|fields| fields.ray.as_ref()) {
        ray.place_fields(&mut pod_sets);
        pod_sets.extend(ray.submitter(job.object)?);
    }
    let live_cluster = live_cluster(job, &sources);
    Ok(ResolvedPodSets { pod_sets, live_cluster, ..ResolvedPodSets::default() })
}

/// All pod sets or none: a Workload of some of them would be admitted for too little.
fn sources<'a>(
    job: DeclaredObject<'_>,
    found: &'a FoundObjects,
) -> Result<Vec<PodSetSource<'a>>, NoPodSets> {
    let mut sources = Vec::new();
    for (rule, needed) in needed(job) {
        match found.get(&needed) {
            Ok(object) => {
                sources.push(PodSetSource { lookup: rule.name.clone(), needed, object });
            }
            Err(_) if rule.optional && !has_templates(job, &rule.name) => {}
            Err(failure) => {
                let missing = Unresolved::Missing(failure.message(&needed));
                return Err(NoPodSets::Unresolved(missing));
            }
        }
    }
    Ok(sources)
}

/// Whether templates of the job stand in the object of a lookup: without it their pod sets are unknown, also if it is optional.
fn has_templates(job: DeclaredObject<'_>, lookup: &str) -> bool {
    job.fields().is_some_and(|fields| {
        let mut sources = fields.pod_sets.iter().filter_map(|rule| rule.from.as_ref());
        fields.training.is_some() || sources.any(|from| from.lookup == lookup)
    })
}

/// The pod sets that the kind declares.
fn declared_sets(
    job: DeclaredObject<'_>,
    sources: &[PodSetSource<'_>],
) -> Result<Vec<DeclaredPodSet>, NoPodSets> {
    let rules = job.fields().map(|fields| fields.pod_sets.as_slice()).unwrap_or_default();
    pod_sets::check_keys(rules, job.object)?;
    let mut pod_sets = Vec::new();
    for rule in rules {
        let Some(from) = &rule.from else {
            pod_sets.extend(rule.pod_sets(job.object, None)?);
            continue;
        };
        let source = sources.iter().find(|one| one.lookup == from.lookup);
        let source = source.ok_or_else(|| NoPodSets::unnamed(&from.lookup))?;
        let sets = rule.pod_sets(job.object, Some(&source.object.data));
        pod_sets.extend(sets.map_err(|error| match error {
            PodSetsError::Template(error) => format!("{}: {error}", source.needed).into(),
            wrong => NoPodSets::from(wrong),
        })?);
    }
    Ok(pod_sets)
}

/// The pod sets of wrapped objects. No schema checks these: the job stays readable, so that its finalizers are removed, and an
/// Event names the field.
fn wrapped_sets(job: DeclaredObject<'_>) -> Result<Vec<DeclaredPodSet>, NoPodSets> {
    let Some(at) = job.fields().and_then(|fields| fields.components.as_ref()) else {
        return Ok(Vec::new());
    };
    let name = job.name();
    let sets = components::wrapped_pod_sets(at, job.object, name);
    sets.map_err(|error| NoPodSets::contradiction(error.to_string()))
}

/// The pod sets of a runtime that an operator renders.
fn rendered_sets(
    job: DeclaredObject<'_>,
    sources: &[PodSetSource<'_>],
) -> Result<Vec<DeclaredPodSet>, NoPodSets> {
    let Some(training) = job.fields().and_then(|fields| fields.training.as_ref()) else {
        return Ok(Vec::new());
    };
    let runtime = sources.first().ok_or_else(|| NoPodSets::unnamed("runtime"))?;
    let name = job.name();
    Ok(training.pod_sets(job.object, name, &runtime.object.data)?)
}

fn live_cluster(job: DeclaredObject<'_>, sources: &[PodSetSource<'_>]) -> Option<LiveCluster> {
    let lookup = job.fields()?.ray.as_ref()?.live.as_ref()?;
    let source = sources.iter().find(|one| one.lookup == *lookup)?;
    let groups = job.fields()?.pod_sets.iter().find(|rule| rule.each.is_some())?;
    Some(LiveCluster::of(source.object, |group| groups.count(group).ok()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crds::v1beta2::Workload;
    use serde_json::{Value, json};

    use super::*;
    use crate::start::admitted_infos::AssignedFlavors;
    use crate::{
        GenericJob, JobGates, JobObject, Kind,
        construct_workload::{KeysToCopy, WorkloadPriority, construct_workload},
        generic_job::Stop,
        reconcile::{JobStep, ReconcileContext, ReconcileStep, WorkloadStep, reconcile},
        start::pod_set_info::PodSetInfo,
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
    fn a_template_in_an_optional_object_waits_for_it() {
        let optional = COURSE.replace("at: /spec/recipe }", "at: /spec/recipe, optional: true }");
        let kind = Kind::parse(&optional).expect("a kind");
        let job = kind.decode(course().to_create()).expect("a Course decodes");
        assert_eq!(job.unresolved(), Some("Recipe.example.com \"base\" does not exist"));
        assert!(!job.contradicts_itself());
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
