//! A job of a declared kind.

use crds::{
    names::labels::PRIORITY_CLASS,
    v1beta2::{PodSet, ReclaimablePod},
    validation::Errors,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::{
    JobFields, MarkedPods, Outcome, RaySpec, Reclaimable, SparkSpec, StartAdditions, TrainingSpec,
    components,
    declared_object::DeclaredObject,
    declared_pod_set::DeclaredPodSet,
    elastic,
    grouped_pods::{self, GroupOwner},
    live_cluster::LiveCluster,
    lookups::{self, ResolvedPodSets, Unresolved},
    marked_pods, probe, resized_groups, training,
};
use crate::{
    GenericJob, JobGates, Kind,
    construct_workload::workload_name_for,
    container_env,
    defaulting::{self, DefaultingFacts, PatchAdd},
    elastic::elastic_copies::CopiedSize,
    generic_job::{JobOutcome, SetSize, Stop, StopWrite},
    group_sizes::GroupSizes,
    job_checks::JobChecks,
    lookups::{FoundObjects, NeededObject},
    pods::Pod,
    pointer::Pointer,
    start::pod_set_info::{PodSetInfo, StartError},
    stored_fields, topology_request,
    validate::AnnotatedTemplate,
};

/// A job of a declared kind. The object is kept whole; only declared fields are read and changed.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredJob {
    pub(super) kind: Kind,
    pub(super) metadata: ObjectMeta,
    /// Everything but the metadata.
    pub(crate) object: Value,
    pub(super) resolved: ResolvedPodSets,
}

impl DeclaredJob {
    /// Decodes an object.
    ///
    /// # Errors
    /// If the metadata or a pod template in the job does not decode.
    pub(crate) fn decode(kind: &Kind, object: Value) -> Result<Self, String> {
        let (metadata, object) = stored_fields::split(object)?;
        let (kind, resolved) = (kind.clone(), ResolvedPodSets::default());
        let mut job = Self { kind, metadata, object, resolved };
        job.resolved = ResolvedPodSets::read(job.parts(), &FoundObjects::default())?;
        Ok(job)
    }

    pub(super) fn parts(&self) -> DeclaredObject<'_> {
        let Self { kind, metadata, object, .. } = self;
        DeclaredObject { kind, metadata, object }
    }

    /// Reads the pod sets of a changed object, which need no other one.
    pub(super) fn read_again(&mut self) {
        let read = ResolvedPodSets::read(self.parts(), &FoundObjects::default());
        self.resolved =
            read.unwrap_or_else(|error| ResolvedPodSets::without(Unresolved::Contradiction(error)));
    }

    /// Why a new job is refused: it names an object of an unknown kind, or one that is required and was not found.
    pub(crate) fn refusal_without(&self, found: &FoundObjects) -> Option<String> {
        let reference = self.fields().and_then(|fields| fields.reference.as_ref());
        let unknown = reference.and_then(|reference| reference.refusal(&self.object));
        unknown.or_else(|| lookups::refusal_without(self.parts(), found))
    }

    /// The groups that copies resize; `None` if the kind has none.
    pub(super) fn group_sizes(&self) -> Option<GroupSizes> {
        resized_groups::group_sizes(self.fields(), &self.object, &self.resolved.pod_sets)
    }

    /// Labels of the object that are decided as for every job, and the marks of its pod template. The same for a changed object:
    /// its template follows queue and class.
    pub(crate) fn defaults_of_pods(
        &self,
        pods: &MarkedPods,
        facts: DefaultingFacts,
        gates: JobGates,
    ) -> Vec<PatchAdd> {
        // No gate could hold the pods that run already. Those of another parent start with it.
        let is_marked = marked_pods::is_marked(&self.kind, pods, &self.object);
        if pods.are_ready(&self.object) && !is_marked || self.is_held_by_other() {
            return Vec::new();
        }
        let mut steps = defaulting::default(self, facts, gates);
        let labelled = defaulting::with_labels(self, &steps);
        // The marks hold the pods, which nothing would ever start if the object is not managed.
        if defaulting::must_suspend(labelled.queue_name(), facts) {
            let label = |key: &str| labelled.label(key);
            steps.extend(marked_pods::marks(&self.kind, &self.object, pods, label));
        }
        steps
    }

    pub(super) fn fields(&self) -> Option<&JobFields> {
        self.kind.fields()
    }

    pub(super) fn ray(&self) -> Option<&RaySpec> {
        self.fields()?.ray.as_ref()
    }

    pub(super) fn training(&self) -> Option<&TrainingSpec> {
        self.fields()?.training.as_ref()
    }

    /// See [`JobObject::start_additions`](crate::JobObject::start_additions).
    pub(crate) fn start_additions(&self) -> Option<StartAdditions> {
        self.training()?.start_additions(&self.object)
    }

    /// The job with its suspend field cleared, and nothing else changed.
    pub(crate) fn to_unsuspended(&self) -> Self {
        let mut job = self.clone();
        job.set_suspended(false);
        job
    }

    pub(super) fn spark(&self) -> Option<&SparkSpec> {
        self.fields()?.spark.as_ref()
    }

    /// Errors of jobs that are queued; others may be what they like.
    fn check_queued(&self, gates: JobGates) -> Errors {
        if !self.counts_as_queued(gates) {
            return Errors::new();
        }
        let mut errors = if self.is_elastic(gates) {
            elastic::check_gates(self.fields(), &self.resolved.pod_sets)
        } else {
            Errors::new()
        };
        errors.extend(self.ray().map(|ray| ray.check(self, gates)).unwrap_or_default());
        let elastic = self.asks_for_elasticity(gates);
        let of_spark = self.spark().map(|spark| spark.check(&self.object, elastic));
        errors.extend(of_spark.unwrap_or_default());
        errors
    }

    /// Whether webhooks check the job as one in a queue. Upstream does not look at the namespace here (docs/reference/kueue.md §5.3).
    fn counts_as_queued(&self, gates: JobGates) -> bool {
        !self.queue_name().is_empty() || gates.manage_without_queue_name
    }

    /// Errors that an update does not add if the job had them before: the finalizers of such a job have to be removed.
    fn accepted_errors(&self, gates: JobGates) -> Errors {
        let mut errors = self.check_components(gates);
        let ray = self.ray().filter(|_| self.counts_as_queued(gates));
        errors.extend(ray.and_then(|ray| ray.check_accepted(&self.object)));
        errors
    }

    /// Errors of the wrapped objects of a job that is queued.
    fn check_components(&self, gates: JobGates) -> Errors {
        let components = self.fields().and_then(|fields| fields.components.as_ref());
        let components = components.filter(|_| self.counts_as_queued(gates));
        components.map(|at| components::faults(at, &self.object)).unwrap_or_default()
    }

    /// The field with the annotations of a pod set in error messages.
    fn annotations_path(&self, set: &DeclaredPodSet) -> String {
        // The pods of these have no template in the job.
        let is_rendered = self.training().is_some() || self.spark().is_some();
        if is_rendered { set.path.clone() } else { format!("{}.metadata", set.path) }
    }

    fn reclaimable(&self, rule: &Reclaimable) -> Vec<ReclaimablePod> {
        if rule.unless.iter().any(|probe| probe.holds(&self.object)) {
            return Vec::new();
        }
        let entries = rule.each.get(&self.object).and_then(Value::as_array);
        let entries = entries.map(Vec::as_slice).unwrap_or_default();
        let succeeded = |set: &DeclaredPodSet| {
            let mut entries = entries.iter();
            let entry = entries.find(|entry| rule.name.text(entry) == Some(set.operator_name()))?;
            let n = i32::try_from(rule.replicas.number(entry)?).ok()?;
            // More than there are is the status of an earlier size of the job.
            let count = (n > 0 && n <= set.replicas).then(|| n * set.pods_per_replica)?;
            Some(ReclaimablePod { name: set.name.clone(), count })
        };
        self.resolved.pod_sets.iter().filter_map(succeeded).collect()
    }
}

impl GenericJob for DeclaredJob {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn has_field(&self, at: &Pointer) -> bool {
        at.get(&self.object).is_some()
    }

    fn spec_suspended(&self) -> bool {
        // Until a pod is ready the queue name may be changed, as of a suspended job.
        if let Some(pods) = self.kind.pods() {
            return !pods.are_ready(&self.object);
        }
        self.kind.suspend().and_then(|at| at.get(&self.object)) == Some(&Value::Bool(true))
    }

    fn to_suspended(&self) -> Self {
        let mut job = self.clone();
        job.set_suspended(true);
        job
    }

    fn managed_by(&self) -> Option<&str> {
        self.kind.managed_by()?.at.text(&self.object)
    }

    fn is_suspended(&self) -> bool {
        self.spec_suspended() && !self.is_stopping()
    }

    /// Only a TrainJob keeps additions while it is suspended.
    fn keeps_additions(&self) -> bool {
        self.spec_suspended() && self.is_stopping()
    }

    fn next_start_write(&self, started: Self) -> Option<Self> {
        let Some(training) = self.training() else {
            return Some(started);
        };
        // Some versions of the operator refuse a change of patches that comes with the switch.
        if !training.same_additions(&self.object, &started.object, &started.resolved.pod_sets) {
            // All of them refuse it while pods are active.
            let waits = self.keeps_additions() && self.is_active();
            return (!waits).then(|| started.to_suspended());
        }
        Some(self.to_unsuspended())
    }

    fn needed_objects(&self) -> Vec<NeededObject> {
        lookups::needed(self.parts()).into_iter().map(|(_, needed)| needed).collect()
    }

    fn with_objects(&self, found: &FoundObjects) -> Self {
        let mut job = self.clone();
        // A template of another object that does not decode counts as missing: the job waits until that object is
        // mended.
        job.resolved = ResolvedPodSets::read(self.parts(), found)
            .unwrap_or_else(|error| ResolvedPodSets::without(Unresolved::Missing(error)));
        job
    }

    fn unresolved(&self) -> Option<&str> {
        match self.resolved.unresolved.as_ref()? {
            Unresolved::Missing(message) | Unresolved::Contradiction(message) => Some(message),
        }
    }

    fn contradicts_itself(&self) -> bool {
        matches!(self.resolved.unresolved, Some(Unresolved::Contradiction(_)))
    }

    fn live_generation(&self, gates: JobGates) -> Option<String> {
        let has_cluster = self.ray().is_some_and(|ray| ray.live.is_some());
        let generation = self.resolved.live_cluster.as_ref().map(LiveCluster::generation);
        (has_cluster && self.is_elastic(gates)).then(|| generation.unwrap_or_default())
    }

    fn set_size(&self) -> Option<SetSize> {
        grouped_pods::size(&self.kind, &self.object)
    }

    fn copied_size(&self) -> Option<CopiedSize> {
        self.group_sizes().map(CopiedSize::Groups)
    }

    fn adopted(&self, pod: &Pod, gates: JobGates) -> Option<Pod> {
        let owner = GroupOwner {
            // Most pods are refused before they need a hash of it.
            workload: &|| workload_name_for(self, gates),
            queue_name: self.queue_name(),
            priority_class: self.label(PRIORITY_CLASS),
        };
        grouped_pods::as_member(&self.kind, &self.object, &owner, pod, gates)
    }

    fn pod_sets(&self, gates: JobGates) -> Vec<PodSet> {
        let sets = self.resolved.pod_sets.iter().map(|set| pod_set(set, gates));
        let mut sets: Vec<PodSet> = sets.collect();
        if self.kind.pods().is_some() {
            // The metadata is that of the members of the group.
            sets.iter_mut().for_each(|set| set.template.metadata = None);
        }
        if let Some(live) = self.resolved.live_cluster.as_ref().filter(|_| self.is_elastic(gates)) {
            live.count_pods(&mut sets);
        }
        if let Some(ray) = self.ray() {
            ray.count_additions(&self.metadata, &self.object, &mut sets);
        }
        sets
    }

    fn pod_sets_as_written(&self, gates: JobGates) -> Option<Vec<PodSet>> {
        if let Some(spark) = self.spark() {
            let former = spark.former_pod_sets(&self.object)?;
            return Some(former.iter().map(|set| pod_set(set, gates)).collect());
        }
        let had_other_head = self.ray().is_some_and(|ray| ray.is_submitted_by_head(&self.object));
        let has_written = self.resolved.pod_sets.iter().any(|set| set.written.is_some());
        if !had_other_head && !has_written {
            return None;
        }
        let mut sets = self.pod_sets(gates);
        if had_other_head {
            RaySpec::restore_former_head(&mut sets);
        }
        if has_written {
            for (set, declared) in sets.iter_mut().zip(&self.resolved.pod_sets) {
                set.count = Some(declared.written_count());
            }
        }
        Some(sets)
    }

    /// Annotations of marked pods are checked when the pods are created.
    fn templates(&self) -> Vec<AnnotatedTemplate<'_>> {
        if self.kind.pods().is_some() { Vec::new() } else { self.requesting_templates() }
    }

    fn requesting_templates(&self) -> Vec<AnnotatedTemplate<'_>> {
        let annotated = self.resolved.pod_sets.iter().map(|set| AnnotatedTemplate {
            path: self.annotations_path(set),
            annotations: set.template.metadata.as_ref().map(|metadata| &*metadata.annotations),
            count: set.count(),
        });
        annotated.collect()
    }

    fn run_with_pod_sets_info(
        &mut self,
        infos: &[PodSetInfo],
        gates: JobGates,
    ) -> Result<(), StartError> {
        self.start(infos, self.is_elastic(gates))
    }

    fn restore_pod_sets_info(&mut self, infos: &[PodSetInfo], _: JobGates) -> bool {
        self.restore(infos)
    }

    fn next_stop_write(&self, stop: &Stop<'_>, _: JobGates) -> Option<StopWrite<Self>> {
        self.stop(stop.infos)
    }

    fn remote_job(&self, pod_sets: &[PodSet], gates: JobGates) -> Self {
        self.for_worker(pod_sets, self.is_elastic(gates))
    }

    fn hold_pods(&mut self) {
        grouped_pods::hold_pods(&self.kind, &mut self.object);
    }

    fn stays_gated_when_dispatched(&self) -> bool {
        grouped_pods::size(&self.kind, &self.object).is_some()
    }

    fn forwarded_spec(&self, copy: &Self) -> Option<Value> {
        self.forwarded(copy)
    }

    fn with_remote_status(&self, copy: &Self) -> Self {
        self.with_status_of(copy)
    }

    fn with_idle_status(&self) -> Option<Self> {
        self.idle()
    }

    /// As far as its status shows: pods are active, or it is over.
    fn has_started(&self) -> bool {
        self.is_active() || self.finished().is_some()
    }

    fn finished(&self) -> Option<JobOutcome> {
        let outcomes = self.fields().into_iter().flat_map(|fields| &fields.outcomes);
        outcomes.into_iter().find_map(|outcome| result(outcome, &self.object))
    }

    fn is_active(&self) -> bool {
        self.fields().is_some_and(|fields| fields.active.holds(&self.object))
    }

    fn pods_ready(&self) -> bool {
        if let Some(spark) = self.spark() {
            return spark.is_ready(&self.object);
        }
        // Without the runtime it is unknown how many there should be.
        if let Some(training) = self.training().filter(|_| self.resolved.unresolved.is_none()) {
            return training.is_ready(&self.object, &self.resolved.pod_sets);
        }
        let ready = self.fields().and_then(|fields| fields.ready.as_ref());
        ready.map_or_else(|| self.is_active(), |ready| ready.holds(&self.object))
    }

    fn reclaimable_pods(&self) -> Vec<ReclaimablePod> {
        let rule = self.fields().and_then(|fields| fields.reclaimable.as_ref());
        rule.map(|rule| self.reclaimable(rule)).unwrap_or_default()
    }

    fn priority_class(&self) -> Option<&str> {
        let fields = self.fields().into_iter().flat_map(|fields| &fields.priority_class);
        fields.filter_map(|at| at.text(&self.object)).find(|class| !class.is_empty())
    }

    /// Of the kinds of Ray and Spark only updates of managed jobs. Without the gate ValidateRayAndSparkJobUpdates a job may leave its
    /// queue while it runs.
    fn checks_update_of(&self, old: &Self, gates: JobGates) -> bool {
        let was_queued = gates.ray_and_spark_updates && !old.queue_name().is_empty();
        (self.ray().is_none() && self.spark().is_none())
            || gates.manage_without_queue_name
            || !self.queue_name().is_empty()
            || was_queued
    }

    fn checks(&self) -> JobChecks {
        self.fields().map(|fields| fields.checks).unwrap_or_default()
    }

    fn topology_advice(&self) -> &'static str {
        self.training().map_or("", |_| training::ADVICE)
    }

    fn is_held_by_other(&self) -> bool {
        self.kind
            .pods()
            .is_some_and(|pods| marked_pods::has_other_parent(&self.kind, pods, &self.object))
    }

    /// Another program starts the jobs of a kind without a declaration.
    fn is_skipped(&self) -> bool {
        let declares_nothing = self.fields().is_none() && self.kind.pods().is_none();
        declares_nothing
            || self.is_held_by_other()
            || self.fields().is_some_and(|fields| fields.skip.holds(&self.object))
    }

    fn never_admissible_reason(&self) -> Option<String> {
        let skip = &self.fields()?.skip;
        let waits = skip.holds(&self.object) && self.is_suspended() && self.finished().is_none();
        let form = skip.present_field().unwrap_or_else(|| "its form".to_owned());
        let (kind, queue) = (self.kind.name(), self.queue_name());
        (waits && !queue.is_empty()).then(|| {
            format!("a {kind} is left alone for {form}: it has no Workload in the queue {queue} and stays suspended")
        })
    }

    fn defers_finalization(&self, gates: JobGates) -> bool {
        let ray = self.ray().filter(|_| gates.quota_for_redis_cleanup);
        ray.is_some_and(|ray| ray.awaits_redis_cleanup(self.metadata(), &self.object))
    }

    fn refuses_prebuilt(&self) -> bool {
        self.is_job() && !self.kind.supports_prebuilt()
    }

    fn defaults(&self, gates: JobGates) -> Vec<PatchAdd> {
        let fields = self.fields().into_iter().flat_map(|fields| &fields.defaults);
        let mut steps = Vec::new();
        for field in fields.filter(|field| field.applies(&self.object, gates)) {
            defaulting::add_field(self, &field.at, field.value.clone(), &mut steps);
        }
        if let Some((training, patches)) =
            self.training().and_then(|one| Some((one, one.with_entry(&self.object)?)))
        {
            defaulting::add_field(self, &training.patches(), patches, &mut steps);
        }
        if self.is_elastic(gates) {
            steps.extend(elastic::missing_gates(self.fields(), &self.resolved.pod_sets));
        }
        steps
    }

    fn creation_errors_alone(&self, gates: JobGates) -> Option<Errors> {
        self.ray().filter(|_| self.counts_as_queued(gates))?.check_cluster_choice(&self.object)
    }

    fn validate_create(&self, gates: JobGates) -> Errors {
        let mut errors = self.check_queued(gates);
        errors.extend(self.check_components(gates));
        errors
    }

    fn is_job(&self) -> bool {
        self.kind.pods().is_none()
    }

    fn validate_update(&self, old: &Self, gates: JobGates) -> Errors {
        let mut errors = self.validate_create(gates);
        let accepted = old.accepted_errors(gates);
        errors.retain(|error| !accepted.contains(error));
        errors.extend(grouped_pods::check_change(&self.kind, &self.object, &old.object));
        errors.extend(marked_pods::check_parent_change(&self.kind, &self.object, &old.object));
        errors
    }
}

fn pod_set(set: &DeclaredPodSet, gates: JobGates) -> PodSet {
    let mut template = set.template.clone();
    container_env::deduplicate(&mut template);
    let labels = topology_request::PodIndexLabels {
        pod: set.index_labels.pod.as_deref(),
        replica: set
            .index_labels
            .replica
            .as_deref()
            .map(|label| (label, set.n_groups.unwrap_or(set.replicas))),
    };
    let topology_request = topology_request::of_template(&template, labels, gates);
    PodSet {
        name: set.name.clone(),
        count: Some(set.count()),
        min_count: None,
        template,
        topology_request,
    }
}

fn message_of(condition: &Value) -> String {
    condition["message"].as_str().unwrap_or_default().to_owned()
}

fn result(outcome: &Outcome, object: &Value) -> Option<JobOutcome> {
    match outcome {
        Outcome::Condition { r#type, success } => {
            let condition = probe::true_condition(object, |one| one == r#type)?;
            Some(JobOutcome { success: *success, message: message_of(condition) })
        }
        Outcome::FirstCondition { succeeded, failed } => {
            let types = succeeded.iter().chain(failed);
            let condition =
                probe::true_condition(object, |one| types.clone().any(|name| name == one))?;
            let success = succeeded.iter().any(|one| condition["type"] == **one);
            Some(JobOutcome { success, message: message_of(condition) })
        }
        Outcome::Values { when: Some(question), .. } if !question.holds(object) => None,
        Outcome::Values { at, succeeded, failed, message, text, .. } => {
            let value = at.text(object)?;
            let is_one_of = |values: &[String]| values.iter().any(|one| one == value);
            let success = is_one_of(succeeded);
            let message = message.as_ref().and_then(|at| at.text(object));
            let message = message.or(text.as_deref()).unwrap_or_default();
            (success || is_one_of(failed))
                .then(|| JobOutcome { success, message: message.to_owned() })
        }
    }
}
