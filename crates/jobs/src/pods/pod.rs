//! A pod.

use std::{borrow::Cow, sync::LazyLock};

use crds::{
    exact,
    meta::is_deleting,
    names::{
        MANAGED,
        annotations::{
            POD_GROUP_FAST_ADMISSION, POD_GROUP_SERVING, POD_GROUP_TOTAL_COUNT,
            POD_SUSPENDING_PARENT, RETRIABLE_IN_GROUP, ROLE_HASH,
        },
        gates::ADMISSION,
        labels::{POD_GROUP_NAME, POD_GROUP_POD_INDEX},
    },
    pod::{PodMetadata, PodTemplate, SharedFields, SharedPodSpec},
    v1beta2::PodSet,
    validation::Errors,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{role_hash::role_hash, start_and_stop, validate};
use crate::{
    GenericJob, JobGates, Kind, container_env,
    defaulting::PatchAdd,
    generic_job::{JobOutcome, Stop, StopWrite},
    go_parse,
    job_checks::JobChecks,
    kind::KindDefinition,
    pointer::Pointer,
    prebuilt::MAX_LABEL_LENGTH,
    start::pod_set_info::{PodSetInfo, StartError},
    topology_request::{self, PodIndexLabels},
    validate::AnnotatedTemplate,
};

/// Condition of a pod: it has a node, or why it has none.
const POD_SCHEDULED: &str = "PodScheduled";

/// Its reason while the pod has scheduling gates.
const SCHEDULING_GATED: &str = "SchedulingGated";

/// The generation of the pod that the status is about.
const OBSERVED_GENERATION: &str = "observedGeneration";

/// Fields of the status that only the kubelet of the pod's node sets.
const KUBELET_FIELDS: [&str; 4] =
    ["hostIP", "startTime", "initContainerStatuses", "containerStatuses"];

/// Name in the configuration.
pub const FRAMEWORK: &str = "pod";

/// Name of the pod set of a single pod.
const MAIN: &str = "main";

/// A pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Pod {
    /// Object metadata.
    #[serde(default, deserialize_with = "exact::metadata")]
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(default)]
    pub spec: SharedPodSpec,
    /// Observed state.
    #[serde(default)]
    pub status: PodStatus,
}

crds::decode!(Pod);

/// Observed state of a pod; unknown fields are in `rest`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Why the pod is in this state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Conditions.
    #[serde(default, deserialize_with = "exact::list", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PodCondition>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: SharedFields,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodCondition {
    /// Type, unique in the pod.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    pub status: String,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: SharedFields,
}

static KIND: LazyLock<Kind> = LazyLock::new(|| {
    Kind::of_code(KindDefinition {
        framework: FRAMEWORK.to_owned(),
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        plural: "pods".to_owned(),
        prebuilt: true,
        elastic: false,
        suspend: None,
        managed_by: None,
        selector: Some(format!("{MANAGED}=true")),
        members: None,
        lookups: Vec::new(),
        pods: None,
        fields: None,
    })
});

/// The kind.
#[must_use]
pub fn kind() -> &'static Kind {
    &KIND
}

/// The name of a pod group, and the field that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupName<'a> {
    /// The name; empty for a single pod.
    pub name: &'a str,
    /// Whether an annotation has it.
    pub annotated: bool,
}

impl Pod {
    /// The group. The annotation takes precedence over the label; without `WorkloadIdentifierAnnotations` only names that are
    /// too long for a label are read from it.
    #[must_use]
    pub fn group(&self, gates: JobGates) -> GroupName<'_> {
        let annotated = self.annotation(POD_GROUP_NAME).filter(|name| {
            !name.is_empty() && (gates.identifier_annotations || name.len() > MAX_LABEL_LENGTH)
        });
        match annotated {
            Some(name) => GroupName { name, annotated: true },
            None => {
                let name = self.label(POD_GROUP_NAME).unwrap_or_default();
                GroupName { name, annotated: false }
            }
        }
    }

    /// The number of pods of its group; `None` if the annotation is no positive number.
    #[must_use]
    pub fn group_total(&self) -> Option<i64> {
        let total = go_parse::integer(self.annotation(POD_GROUP_TOTAL_COUNT)?).ok()?;
        (total > 0).then_some(total)
    }

    /// Its role in the group, as the webhook has written it. A pod that was created without the webhook gets the same one.
    #[must_use]
    pub fn role(&self) -> Cow<'_, str> {
        match self.annotation(ROLE_HASH) {
            Some(role) => Cow::Borrowed(role),
            None => Cow::Owned(role_hash(&self.spec)),
        }
    }

    /// Whether its group is admitted before all pods exist.
    #[must_use]
    pub fn wants_fast_admission(&self) -> bool {
        self.annotation(POD_GROUP_FAST_ADMISSION) == Some("true")
    }

    /// Whether its group serves and therefore never finishes.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.annotation(POD_GROUP_SERVING) == Some("true")
    }

    /// Whether its group ends with it: a failed pod is not replaced.
    #[must_use]
    pub fn is_unretriable(&self) -> bool {
        self.annotation(RETRIABLE_IN_GROUP) == Some("false")
    }

    /// Whether the gate of an admission holds it.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        start_and_stop::gates(&self.spec).any(|gate| gate == ADMISSION)
    }

    /// Whether its containers have ended for good.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether it succeeded.
    #[must_use]
    pub fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }

    /// Whether it is being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        is_deleting(&self.metadata)
    }

    /// Whether it runs, or will without anything that Kueue does.
    #[must_use]
    pub fn runs(&self) -> bool {
        !self.is_gated() && !self.is_terminated() && !self.is_deleting()
    }

    /// Whether it may run, runs or succeeded. One that is deleted before it has a node never runs.
    #[must_use]
    pub fn is_runnable_or_succeeded(&self) -> bool {
        let may_run = !self.is_deleting() || (self.has_node() && !self.has_served());
        self.status.phase != "Failed" && may_run
    }

    /// Until when quota is held for the pod, which runs: the end of time unless it is being deleted. A node that does not answer never
    /// ends its pods, so that a deleted one counts for another grace period only; with the gate FastQuotaReleaseInPodIntegration not
    /// even that.
    #[must_use]
    pub fn runs_until(&self, now: Timestamp, gates: JobGates) -> Option<Timestamp> {
        let until = match &self.metadata.deletion_timestamp {
            None => Timestamp::MAX,
            Some(_) if gates.fast_quota_release => now,
            Some(deleted) => {
                let grace = self.metadata.deletion_grace_period_seconds.unwrap_or_default();
                let end = deleted.0.checked_add(SignedDuration::from_secs(grace));
                end.unwrap_or(Timestamp::MAX)
            }
        };
        Some(until).filter(|until| *until > now)
    }

    fn has_node(&self) -> bool {
        self.spec.rest.get("nodeName").is_some_and(|node| !node.is_null())
    }

    /// Whether it served, was stopped, and only its finalizer keeps it. Its owner may need the name of the pod.
    #[must_use]
    pub fn has_served(&self) -> bool {
        let stopped = self.condition(start_and_stop::TERMINATION_TARGET);
        self.is_serving()
            && self.is_deleting()
            && self.is_terminated()
            && stopped.is_some_and(|one| one.status == "True")
    }

    /// Whether it has ended, or is being deleted, as the pod of a serving set that holds it. The set makes another pod of this name,
    /// or has ended itself; the group learns nothing from the pod. In a group that ends, a member that has succeeded counts.
    #[must_use]
    pub fn gives_way_to_its_parent(&self) -> bool {
        let ends = self.is_terminated() || self.is_deleting();
        ends && self.is_serving() && self.has_suspending_parent()
    }

    /// Whether it names a parent that holds it until its Workload is admitted.
    #[must_use]
    pub fn has_suspending_parent(&self) -> bool {
        self.annotation(POD_SUSPENDING_PARENT).is_some()
    }

    /// Whether it has the finalizer of managed pods.
    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.metadata.finalizers.iter().flatten().any(|one| one == MANAGED)
    }

    /// When its containers were last ready, or its deletion was requested; the latest time if neither is known.
    #[must_use]
    pub fn last_active(&self) -> Timestamp {
        // True says since when they are ready, not when they last were.
        let ready = self.condition("ContainersReady").filter(|one| one.status == "False");
        let ready = ready.and_then(|one| one.last_transition_time.as_ref()).map(|time| time.0);
        let deleted = self.metadata.deletion_timestamp.as_ref().map(|time| time.0);
        ready.into_iter().chain(deleted).min().unwrap_or(Timestamp::MAX)
    }

    /// A condition.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&PodCondition> {
        self.status.conditions.iter().find(|one| one.r#type == kind)
    }

    /// The condition PodScheduled of a gated pod without its copy. A true one is that of an earlier copy: the next one may have no node.
    fn own_scheduling(&self) -> Option<PodCondition> {
        let own = self.condition(POD_SCHEDULED)?;
        if own.status != "True" {
            return Some(own.clone());
        }
        let gated = json!({
            "type": POD_SCHEDULED, "status": "False", "reason": SCHEDULING_GATED,
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        serde_json::from_value(gated).ok()
    }

    /// Whether the status says that the pod has a node. Of a gated pod it is that of a copy, also before its containers run.
    pub(super) fn shows_node(&self) -> bool {
        let is_scheduled = self.condition(POD_SCHEDULED).is_some_and(|one| one.status == "True");
        let mut of_kubelet = KUBELET_FIELDS.iter();
        let is_set = of_kubelet.any(|field| self.status.rest.contains_key(*field));
        self.has_started() || is_scheduled || is_set
    }

    /// Whether its condition Ready is true.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|one| one.status == "True")
    }

    /// The pod set of pods like this one.
    pub(super) fn pod_set(&self, name: &str, count: i32, gates: JobGates) -> PodSet {
        // Without metadata: labels and annotations of one pod are not those of the others.
        let mut template = PodTemplate { metadata: None, spec: Some(self.spec.clone()) };
        container_env::deduplicate(&mut template);
        if let Some(spec) = template.spec.as_mut() {
            // The node of one pod is not that of the others.
            spec.rest.remove("nodeName");
        }
        let annotations = self.metadata.annotations.clone().unwrap_or_default();
        let metadata = PodMetadata { annotations: annotations.into(), ..PodMetadata::default() };
        let annotated = PodTemplate { metadata: Some(metadata.into()), spec: None };
        let labels = PodIndexLabels { pod: Some(POD_GROUP_POD_INDEX), ..PodIndexLabels::default() };
        PodSet {
            name: name.to_owned(),
            count: Some(count),
            min_count: None,
            topology_request: topology_request::of_template(&annotated, labels, gates),
            template,
        }
    }
}

/// A single pod. Members of a group are decided about together ([`super::group`]).
impl GenericJob for Pod {
    fn kind(&self) -> &Kind {
        kind()
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    /// The API server refuses a pod without a spec.
    fn has_field(&self, _: &Pointer) -> bool {
        true
    }

    /// A pod that has ended may be changed like one that has not started.
    fn spec_suspended(&self) -> bool {
        self.is_suspended()
    }

    /// A gate cannot be added to an existing pod.
    fn to_suspended(&self) -> Self {
        self.clone()
    }

    fn managed_by(&self) -> Option<&str> {
        None
    }

    /// A pod that has ended needs no stop.
    fn is_suspended(&self) -> bool {
        self.is_gated() || self.is_terminated()
    }

    fn pod_sets(&self, gates: JobGates) -> Vec<PodSet> {
        vec![self.pod_set(MAIN, 1, gates)]
    }

    /// None: [`super::validate`] checks the annotations of a pod after those of its group.
    fn templates(&self) -> Vec<AnnotatedTemplate<'_>> {
        Vec::new()
    }

    fn requesting_templates(&self) -> Vec<AnnotatedTemplate<'_>> {
        let annotations = self.metadata.annotations.as_ref();
        vec![AnnotatedTemplate { path: "metadata".to_owned(), annotations, count: 1 }]
    }

    fn run_with_pod_sets_info(
        &mut self,
        infos: &[PodSetInfo],
        _: JobGates,
    ) -> Result<(), StartError> {
        let [info] = infos else {
            return Err(StartError::WrongNumber { expected: 1, admitted: infos.len() });
        };
        start_and_stop::start(self, info)
    }

    /// A pod that ran does not come back.
    fn restore_pod_sets_info(&mut self, _: &[PodSetInfo], _: JobGates) -> bool {
        false
    }

    fn next_stop_write(&self, stop: &Stop<'_>, _: JobGates) -> Option<StopWrite<Self>> {
        start_and_stop::next_stop_write(self, stop)
    }

    fn finalized(&self) -> Option<Self> {
        self.has_finalizer().then(|| start_and_stop::without_finalizer(self))
    }

    fn remote_job(&self, _: &[PodSet], _: JobGates) -> Self {
        start_and_stop::for_worker(self)
    }

    /// Until the copy is scheduled, the condition PodScheduled says that this pod is gated. Otherwise an autoscaler of this
    /// cluster would make a node for it.
    fn with_remote_status(&self, copy: &Self) -> Self {
        let mut status = copy.status.clone();
        let is_scheduled = copy.condition(POD_SCHEDULED).is_some_and(|one| one.status == "True");
        if !is_scheduled {
            status.conditions.retain(|one| one.r#type != POD_SCHEDULED);
            status.conditions.extend(self.own_scheduling());
        }
        // It counts changes of this pod's spec, and the API server of this cluster sets it.
        let own = self.status.rest.get(OBSERVED_GENERATION);
        if status.rest.get(OBSERVED_GENERATION) != own {
            status.rest.remove(OBSERVED_GENERATION);
            status.rest.extend(own.map(|own| (OBSERVED_GENERATION.to_owned(), own.clone())));
        }
        Self { status, ..self.clone() }
    }

    fn stays_gated_when_dispatched(&self) -> bool {
        true
    }

    /// A gated pod runs nothing itself. When its copy is gone before its end it waits again, as it did before.
    fn with_idle_status(&self) -> Option<Self> {
        let shows_copy = self.is_gated() && !self.is_terminated() && self.shows_node();
        let status = PodStatus {
            phase: "Pending".to_owned(),
            conditions: self.own_scheduling().into_iter().collect(),
            ..PodStatus::default()
        };
        shows_copy.then(|| Self { status, ..self.clone() })
    }

    fn has_started(&self) -> bool {
        !matches!(self.status.phase.as_str(), "" | "Pending")
    }

    fn finished(&self) -> Option<JobOutcome> {
        let success = self.has_succeeded();
        let message = if success { String::new() } else { self.status.message.clone() };
        self.is_terminated().then_some(JobOutcome { success, message })
    }

    /// An eviction deletes the pod, and then [`GenericJob::released_at`] says when quota returns.
    fn is_active(&self) -> bool {
        false
    }

    /// A finalizer may keep a pod that never ran or has ended, and a node that does not answer never ends one.
    fn released_at(&self, now: Timestamp, gates: JobGates) -> Option<Timestamp> {
        let may_run = (self.has_node() || self.has_started()) && !self.is_terminated();
        let until = self.runs_until(now, gates).filter(|_| may_run);
        self.is_deleting().then(|| until.unwrap_or(now))
    }

    fn pods_ready(&self) -> bool {
        self.is_ready()
    }

    fn defaults(&self, _: JobGates) -> Vec<PatchAdd> {
        Vec::new()
    }

    /// A pod has one pod set.
    fn checks(&self) -> JobChecks {
        JobChecks { syntax_of_updates: false, pod_set_groups: false, ..JobChecks::default() }
    }

    fn validate_create(&self, gates: JobGates) -> Errors {
        validate::create(self, gates)
    }

    fn validate_update(&self, old: &Self, gates: JobGates) -> Errors {
        validate::update(self, old, gates)
    }
}
