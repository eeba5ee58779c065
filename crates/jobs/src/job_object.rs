//! A job of any kind.

use std::borrow::Cow;

use crds::{
    decode::Decode,
    v1beta2::{PodSet, ReclaimablePod},
    validation::Errors,
};
use jiff::Timestamp;
use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde_json::{Value, json};

use crate::{
    GenericJob, Job, JobGates, Kind, Pod, StopWrite,
    declared::{DeclaredJob, StartAdditions},
    defaulting::{self, DefaultingFacts, PatchAdd},
    elastic::elastic_copies::CopiedSize,
    generic_job::{JobOutcome, SetSize, Stop},
    job,
    job_checks::JobChecks,
    leader_worker_set::{self, LeaderWorkerSet},
    lookups::{FoundObjects, NeededObject},
    pods,
    pointer::Pointer,
    start::pod_set_info::{PodSetInfo, StartError},
    stored_fields,
    validate::AnnotatedTemplate,
};

/// A job of any kind. The most frequent kind is typed.
#[derive(Clone, Debug, PartialEq)]
pub enum JobObject {
    /// A batch/v1 Job.
    Batch(Job),
    /// A pod.
    Pod(Pod),
    /// A LeaderWorkerSet.
    LeaderWorkerSet(LeaderWorkerSet),
    /// A job of a declared kind.
    Declared(DeclaredJob),
}

/// Calls the method of the job inside.
macro_rules! of_kind {
    ($object:expr, $job:ident => $result:expr) => {
        match $object {
            JobObject::Batch($job) => $result,
            JobObject::Pod($job) => $result,
            JobObject::LeaderWorkerSet($job) => $result,
            JobObject::Declared($job) => $result,
        }
    };
}

impl JobObject {
    /// Decodes a job.
    ///
    /// # Errors
    /// If the object does not decode.
    pub(crate) fn decode(kind: &Kind, object: Value) -> Result<Self, String> {
        if kind == job::kind() {
            return Job::decode(&object).map(Self::Batch).map_err(|error| error.to_string());
        }
        if kind == pods::kind() {
            return Pod::decode(&object).map(Self::Pod).map_err(|error| error.to_string());
        }
        if kind == leader_worker_set::kind() {
            return LeaderWorkerSet::decode(object).map(Self::LeaderWorkerSet);
        }
        DeclaredJob::decode(kind, object).map(Self::Declared)
    }

    /// Decodes the text of a job. Kinds with a type of their own decode it without a tree of JSON.
    ///
    /// # Errors
    /// If the text is no JSON, or the object does not decode.
    pub(crate) fn decode_text(kind: &Kind, text: &str) -> Result<Self, String> {
        let decoded = if kind == job::kind() {
            Job::decode_text(text).map(Self::Batch)
        } else if kind == pods::kind() {
            Pod::decode_text(text).map(Self::Pod)
        } else {
            let object = serde_json::from_str(text).map_err(|error| error.to_string())?;
            return Self::decode(kind, object);
        };
        decoded.map_err(|error| error.to_string())
    }

    /// What the first of two writes of a start adds to the pods; `None` if the job has no place for it.
    #[must_use]
    pub fn start_additions(&self) -> Option<StartAdditions> {
        match self {
            Self::Declared(job) => job.start_additions(),
            Self::Batch(_) | Self::Pod(_) | Self::LeaderWorkerSet(_) => None,
        }
    }

    /// A job with additions that are stored, after the second write.
    #[must_use]
    pub fn to_unsuspended(&self) -> Self {
        let Self::Declared(job) = self else { return self.clone() };
        Self::Declared(job.to_unsuspended())
    }

    /// The pod, if it is one.
    #[must_use]
    pub fn as_pod(&self) -> Option<&Pod> {
        match self {
            Self::Pod(pod) => Some(pod),
            Self::Batch(_) | Self::LeaderWorkerSet(_) | Self::Declared(_) => None,
        }
    }

    /// The defaults of a new job.
    #[must_use]
    pub fn defaults_by(&self, facts: DefaultingFacts, gates: JobGates) -> Vec<PatchAdd> {
        match self {
            Self::Pod(pod) => pods::defaulting::default(pod, facts, gates),
            Self::LeaderWorkerSet(set) => set.defaults_by(facts, gates),
            Self::Declared(job) => match job.kind().pods() {
                Some(pods) => job.defaults_of_pods(pods, facts, gates),
                None => defaulting::default(self, facts, gates),
            },
            Self::Batch(_) => defaulting::default(self, facts, gates),
        }
    }

    /// Whether a changed object gets the defaults of a new one: its pod templates follow its queue and its class.
    #[must_use]
    pub fn is_defaulted_again(&self) -> bool {
        matches!(self, Self::LeaderWorkerSet(_)) || self.kind().pods().is_some()
    }

    /// Whether the defaults depend on the labels of the namespace, which may cost a request.
    #[must_use]
    pub fn needs_namespace(&self, facts: DefaultingFacts, gates: JobGates) -> bool {
        // The namespace decides about a pod also if it names a queue (docs/reference/kueue.md §5.4).
        self.as_pod().is_some() || defaulting::needs_namespace(self, facts, gates)
    }

    /// Whether the defaults depend on `ancestor_managed`, which costs requests. All other facts must be set.
    #[must_use]
    pub fn needs_ancestors(&self, facts: DefaultingFacts) -> bool {
        match self {
            Self::Pod(pod) => pods::defaulting::needs_ancestors(pod, facts),
            // Such an object has no switch. Its answer to `spec_suspended`, that no pod is ready, does not hold the
            // next pod.
            _ if self.is_defaulted_again() => defaulting::may_suspend(self, facts),
            Self::Batch(_) | Self::LeaderWorkerSet(_) | Self::Declared(_) => {
                defaulting::needs_ancestors(self, facts)
            }
        }
    }

    /// The spec, and every other field but metadata and status.
    #[must_use]
    pub fn without_status(&self) -> Value {
        match self {
            Self::Batch(job) => json!({ "spec": job.spec }),
            Self::Pod(pod) => json!({ "spec": pod.spec }),
            Self::LeaderWorkerSet(set) => stored_fields::without_status(set.stored()),
            Self::Declared(job) => stored_fields::without_status(job.stored()),
        }
    }

    /// The status; empty if there is none.
    #[must_use]
    pub fn status(&self) -> Value {
        match self {
            Self::Batch(job) => json!(job.status),
            Self::Pod(pod) => json!(pod.status),
            Self::LeaderWorkerSet(set) => stored_fields::status(set.stored()),
            Self::Declared(job) => stored_fields::status(job.stored()),
        }
    }

    /// Whether the object has a status at all.
    #[must_use]
    pub fn has_status(&self) -> bool {
        match self {
            Self::Batch(_) | Self::Pod(_) | Self::LeaderWorkerSet(_) => true,
            Self::Declared(job) => job.stored().get("status").is_some(),
        }
    }

    /// The job without active pods in its status, where all other fields stay: for a status that may not be removed. `None` if it has
    /// none already.
    #[must_use]
    pub fn with_idle_counts(&self) -> Option<Self> {
        match self {
            Self::Declared(job) => job.idle_counts().map(Self::Declared),
            _ => self.with_idle_status(),
        }
    }

    /// Whether the status is that of a copy. An object of another kind has no status for it, so nothing differs.
    #[must_use]
    pub fn has_status_of(&self, copy: &Self) -> bool {
        match (self, copy) {
            (Self::Batch(job), Self::Batch(copy)) => job.has_status_of(copy),
            (Self::Pod(pod), Self::Pod(copy)) => pod.with_remote_status(copy).status == pod.status,
            // A set keeps the status of its own cluster.
            _ if self.set_size().is_some() => true,
            (Self::Declared(job), Self::Declared(copy)) => job.has_status_of(copy),
            _ => true,
        }
    }

    /// Whether a copy is over in a way that the API server does not take for this job, which shows another end already.
    #[must_use]
    pub fn refuses_end_of(&self, copy: &Self) -> bool {
        let (Self::Batch(job), Self::Batch(copy)) = (self, copy) else {
            return false;
        };
        copy.finished().is_some() && job.with_remote_status(copy).finished().is_none()
    }

    /// Whether it is one of several jobs of a Workload.
    #[must_use]
    pub fn is_group_member(&self, gates: JobGates) -> bool {
        match self {
            Self::Pod(pod) => !pod.group(gates).name.is_empty(),
            Self::Batch(_) | Self::LeaderWorkerSet(_) | Self::Declared(_) => false,
        }
    }

    /// Why a new job is refused for the objects that it names, one of which was not found; `None` if it is not.
    #[must_use]
    pub fn refusal_without(&self, found: &FoundObjects) -> Option<String> {
        match self {
            Self::Declared(job) => job.refusal_without(found),
            Self::Batch(_) | Self::Pod(_) | Self::LeaderWorkerSet(_) => None,
        }
    }

    /// The object as it is created.
    #[must_use]
    pub fn to_create(&self) -> Value {
        let mut object = self.without_status();
        object["apiVersion"] = json!(self.kind().api_version());
        object["kind"] = json!(self.kind().name());
        object["metadata"] = json!(self.metadata());
        object
    }
}

/// An object of the API, of a kind that is known at run time.
impl kube_core::Resource for JobObject {
    type DynamicType = Kind;
    type Scope = NamespaceResourceScope;

    fn kind(kind: &Kind) -> Cow<'_, str> {
        kind.name().into()
    }

    fn group(kind: &Kind) -> Cow<'_, str> {
        kind.group().into()
    }

    fn version(kind: &Kind) -> Cow<'_, str> {
        kind.version().into()
    }

    fn plural(kind: &Kind) -> Cow<'_, str> {
        kind.plural().into()
    }

    fn meta(&self) -> &ObjectMeta {
        self.metadata()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.metadata_mut()
    }
}

impl From<Job> for JobObject {
    fn from(job: Job) -> Self {
        Self::Batch(job)
    }
}

impl From<Pod> for JobObject {
    fn from(pod: Pod) -> Self {
        Self::Pod(pod)
    }
}

impl GenericJob for JobObject {
    fn kind(&self) -> &Kind {
        of_kind!(self, job => job.kind())
    }

    fn metadata(&self) -> &ObjectMeta {
        of_kind!(self, job => job.metadata())
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        of_kind!(self, job => job.metadata_mut())
    }

    fn has_field(&self, at: &Pointer) -> bool {
        of_kind!(self, job => job.has_field(at))
    }

    fn spec_suspended(&self) -> bool {
        of_kind!(self, job => job.spec_suspended())
    }

    fn to_suspended(&self) -> Self {
        match self {
            Self::Batch(job) => Self::Batch(job.to_suspended()),
            Self::Pod(pod) => Self::Pod(pod.to_suspended()),
            Self::LeaderWorkerSet(set) => Self::LeaderWorkerSet(set.to_suspended()),
            Self::Declared(job) => Self::Declared(job.to_suspended()),
        }
    }

    fn managed_by(&self) -> Option<&str> {
        of_kind!(self, job => job.managed_by())
    }

    fn keeps_counts_of_copies(&self) -> bool {
        of_kind!(self, job => job.keeps_counts_of_copies())
    }

    fn with_counts_of(&self, copy: &Self) -> Option<Self> {
        match (self, copy) {
            (Self::Batch(job), Self::Batch(copy)) => job.with_counts_of(copy).map(Self::Batch),
            _ => None,
        }
    }

    fn keeps_additions(&self) -> bool {
        of_kind!(self, job => job.keeps_additions())
    }

    fn next_start_write(&self, started: Self) -> Option<Self> {
        match (self, started) {
            (Self::Declared(job), Self::Declared(started)) => {
                job.next_start_write(started).map(Self::Declared)
            }
            (_, started) => Some(started),
        }
    }

    fn is_suspended(&self) -> bool {
        of_kind!(self, job => job.is_suspended())
    }

    fn needed_objects(&self) -> Vec<NeededObject> {
        of_kind!(self, job => job.needed_objects())
    }

    fn with_objects(&self, found: &FoundObjects) -> Self {
        match self {
            Self::Batch(job) => Self::Batch(job.with_objects(found)),
            Self::Pod(pod) => Self::Pod(pod.with_objects(found)),
            Self::LeaderWorkerSet(set) => Self::LeaderWorkerSet(set.with_objects(found)),
            Self::Declared(job) => Self::Declared(job.with_objects(found)),
        }
    }

    fn unresolved(&self) -> Option<&str> {
        of_kind!(self, job => job.unresolved())
    }

    fn contradicts_itself(&self) -> bool {
        of_kind!(self, job => job.contradicts_itself())
    }

    fn live_generation(&self, gates: JobGates) -> Option<String> {
        of_kind!(self, job => job.live_generation(gates))
    }

    fn set_size(&self) -> Option<SetSize> {
        of_kind!(self, job => job.set_size())
    }

    fn copied_size(&self) -> Option<CopiedSize> {
        of_kind!(self, job => job.copied_size())
    }

    fn replica_of(&self, pod: &Pod) -> Option<u32> {
        of_kind!(self, job => job.replica_of(pod))
    }

    fn adopted(&self, pod: &Pod, gates: JobGates) -> Option<Pod> {
        of_kind!(self, job => job.adopted(pod, gates))
    }

    fn pod_sets(&self, gates: JobGates) -> Vec<PodSet> {
        of_kind!(self, job => job.pod_sets(gates))
    }

    fn pod_sets_as_written(&self, gates: JobGates) -> Option<Vec<PodSet>> {
        of_kind!(self, job => job.pod_sets_as_written(gates))
    }

    fn templates(&self) -> Vec<AnnotatedTemplate<'_>> {
        of_kind!(self, job => job.templates())
    }

    fn requesting_templates(&self) -> Vec<AnnotatedTemplate<'_>> {
        of_kind!(self, job => job.requesting_templates())
    }

    fn run_with_pod_sets_info(
        &mut self,
        infos: &[PodSetInfo],
        gates: JobGates,
    ) -> Result<(), StartError> {
        of_kind!(self, job => job.run_with_pod_sets_info(infos, gates))
    }

    fn restore_pod_sets_info(&mut self, infos: &[PodSetInfo], gates: JobGates) -> bool {
        of_kind!(self, job => job.restore_pod_sets_info(infos, gates))
    }

    fn next_stop_write(&self, stop: &Stop<'_>, gates: JobGates) -> Option<StopWrite<Self>> {
        match self {
            Self::Batch(job) => Some(job.next_stop_write(stop, gates)?.map(Self::Batch)),
            Self::Pod(pod) => Some(pod.next_stop_write(stop, gates)?.map(Self::Pod)),
            Self::LeaderWorkerSet(set) => {
                Some(set.next_stop_write(stop, gates)?.map(Self::LeaderWorkerSet))
            }
            Self::Declared(job) => Some(job.next_stop_write(stop, gates)?.map(Self::Declared)),
        }
    }

    fn finalized(&self) -> Option<Self> {
        match self {
            Self::Batch(job) => job.finalized().map(Self::Batch),
            Self::Pod(pod) => pod.finalized().map(Self::Pod),
            Self::LeaderWorkerSet(set) => set.finalized().map(Self::LeaderWorkerSet),
            Self::Declared(job) => job.finalized().map(Self::Declared),
        }
    }

    fn remote_job(&self, pod_sets: &[PodSet], gates: JobGates) -> Self {
        match self {
            Self::Batch(job) => Self::Batch(job.remote_job(pod_sets, gates)),
            Self::Pod(pod) => Self::Pod(pod.remote_job(pod_sets, gates)),
            Self::LeaderWorkerSet(set) => Self::LeaderWorkerSet(set.remote_job(pod_sets, gates)),
            Self::Declared(job) => Self::Declared(job.remote_job(pod_sets, gates)),
        }
    }

    fn forwarded_spec(&self, copy: &Self) -> Option<Value> {
        match (self, copy) {
            (Self::Declared(job), Self::Declared(copy)) => job.forwarded_spec(copy),
            _ => None,
        }
    }

    fn with_remote_status(&self, copy: &Self) -> Self {
        match (self, copy) {
            (Self::Batch(job), Self::Batch(copy)) => Self::Batch(job.with_remote_status(copy)),
            (Self::Pod(pod), Self::Pod(copy)) => Self::Pod(pod.with_remote_status(copy)),
            (Self::Declared(job), Self::Declared(copy)) => {
                Self::Declared(job.with_remote_status(copy))
            }
            // A copy has the kind of its job; an object of another kind has no status for it.
            _ => self.clone(),
        }
    }

    fn with_idle_status(&self) -> Option<Self> {
        match self {
            Self::Batch(job) => job.with_idle_status().map(Self::Batch),
            Self::Pod(pod) => pod.with_idle_status().map(Self::Pod),
            Self::LeaderWorkerSet(set) => set.with_idle_status().map(Self::LeaderWorkerSet),
            Self::Declared(job) => job.with_idle_status().map(Self::Declared),
        }
    }

    fn has_started(&self) -> bool {
        of_kind!(self, job => job.has_started())
    }

    fn finished(&self) -> Option<JobOutcome> {
        of_kind!(self, job => job.finished())
    }

    fn is_active(&self) -> bool {
        of_kind!(self, job => job.is_active())
    }

    fn pods_ready(&self) -> bool {
        of_kind!(self, job => job.pods_ready())
    }

    fn granted_pods_ready(&self, granted: i32) -> bool {
        of_kind!(self, job => job.granted_pods_ready(granted))
    }

    fn reclaimable_pods(&self) -> Vec<ReclaimablePod> {
        of_kind!(self, job => job.reclaimable_pods())
    }

    fn defaults(&self, gates: JobGates) -> Vec<PatchAdd> {
        of_kind!(self, job => job.defaults(gates))
    }

    fn priority_class(&self) -> Option<&str> {
        of_kind!(self, job => job.priority_class())
    }

    fn is_job(&self) -> bool {
        of_kind!(self, job => job.is_job())
    }

    fn checks(&self) -> JobChecks {
        of_kind!(self, job => job.checks())
    }

    fn topology_advice(&self) -> &'static str {
        of_kind!(self, job => job.topology_advice())
    }

    fn stays_gated_when_dispatched(&self) -> bool {
        of_kind!(self, job => job.stays_gated_when_dispatched())
    }

    fn hold_pods(&mut self) {
        of_kind!(self, job => job.hold_pods());
    }

    fn is_held_by_other(&self) -> bool {
        of_kind!(self, job => job.is_held_by_other())
    }

    fn is_skipped(&self) -> bool {
        of_kind!(self, job => job.is_skipped())
    }

    fn never_admissible_reason(&self) -> Option<String> {
        of_kind!(self, job => job.never_admissible_reason())
    }

    fn defers_finalization(&self, gates: JobGates) -> bool {
        of_kind!(self, job => job.defers_finalization(gates))
    }

    fn released_at(&self, now: Timestamp, gates: JobGates) -> Option<Timestamp> {
        of_kind!(self, job => job.released_at(now, gates))
    }

    fn refuses_prebuilt(&self) -> bool {
        of_kind!(self, job => job.refuses_prebuilt())
    }

    fn checks_update_of(&self, old: &Self, gates: JobGates) -> bool {
        match (self, old) {
            (Self::Declared(job), Self::Declared(old)) => job.checks_update_of(old, gates),
            _ => true,
        }
    }

    fn creation_errors_alone(&self, gates: JobGates) -> Option<Errors> {
        of_kind!(self, job => job.creation_errors_alone(gates))
    }

    fn validate_create(&self, gates: JobGates) -> Errors {
        of_kind!(self, job => job.validate_create(gates))
    }

    fn validate_update(&self, old: &Self, gates: JobGates) -> Errors {
        match (self, old) {
            (Self::Batch(job), Self::Batch(old)) => job.validate_update(old, gates),
            (Self::Pod(pod), Self::Pod(old)) => pod.validate_update(old, gates),
            (Self::LeaderWorkerSet(set), Self::LeaderWorkerSet(old)) => {
                set.validate_update(old, gates)
            }
            (Self::Declared(job), Self::Declared(old)) => job.validate_update(old, gates),
            // The API server compares an object with an earlier version of itself.
            _ => Errors::new(),
        }
    }
}
