//! A LeaderWorkerSet.

use std::sync::LazyLock;

use crds::{
    decode::from_value, names::annotations::POD_SUSPENDING_PARENT, pod::PodTemplate,
    v1beta2::PodSet, validation::Errors,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::{defaulting, members, validate};
use crate::{
    GenericJob, JobGates, Kind, Pod, container_env,
    defaulting::{DefaultingFacts, PatchAdd},
    dispatch::remote_objects::metadata_for_creation,
    dispatch::set_copies,
    generic_job::{JobOutcome, SetSize, Stop, StopWrite},
    job_checks::JobChecks,
    kind::KindDefinition,
    nulls::without_nulls,
    pointer::Pointer,
    start::pod_set_info::{PodSetInfo, StartError},
    stored_fields,
    topology_request::{self, PodIndexLabels},
    validate::AnnotatedTemplate,
};

/// Name in the configuration.
pub(super) const FRAMEWORK: &str = "leaderworkerset.x-k8s.io/leaderworkerset";

/// Label of every pod of a set, with the name of the set.
const NAME_LABEL: &str = "leaderworkerset.sigs.k8s.io/name";

/// Label of a pod with its index in the replica.
const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// Where the templates stand.
pub(super) const LEADER: &str = "leaderTemplate";
pub(super) const WORKER: &str = "workerTemplate";

/// A LeaderWorkerSet. The object is kept whole.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderWorkerSet {
    metadata: ObjectMeta,
    /// Everything but the metadata.
    object: Value,
    /// The template of leaders, if it is not that of workers.
    leader: Option<PodTemplate>,
    worker: PodTemplate,
}

static KIND: LazyLock<Kind> = LazyLock::new(|| {
    Kind::of_code(KindDefinition {
        framework: FRAMEWORK.to_owned(),
        group: "leaderworkerset.x-k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "LeaderWorkerSet".to_owned(),
        plural: "leaderworkersets".to_owned(),
        prebuilt: false,
        elastic: false,
        suspend: None,
        managed_by: None,
        selector: None,
        members: Some(NAME_LABEL),
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

impl LeaderWorkerSet {
    /// Decodes an object.
    ///
    /// # Errors
    /// If the metadata or a pod template does not decode.
    pub(crate) fn decode(object: Value) -> Result<Self, String> {
        let (metadata, object) = stored_fields::split(object)?;
        let template = |name: &str| {
            let stored = template_of(&object, name)?;
            let decoded = from_value(&without_nulls(stored));
            Some(decoded.map_err(|error| format!("spec.leaderWorkerTemplate.{name}: {error}")))
        };
        let leader: Option<PodTemplate> = template(LEADER).transpose()?;
        let worker = template(WORKER).transpose()?.unwrap_or_default();
        Ok(Self { metadata, leader, worker, object })
    }

    /// Number of pods of a replica.
    pub(super) fn size(&self) -> i64 {
        let size = self.object.pointer("/spec/leaderWorkerTemplate/size").and_then(Value::as_i64);
        size.unwrap_or(1).max(0)
    }

    /// Number of replicas, as it is written.
    pub(super) fn replicas(&self) -> i64 {
        self.object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
    }

    /// The stored form of a template.
    pub(super) fn stored_template(&self, name: &str) -> Option<&Value> {
        template_of(&self.object, name)
    }

    /// Templates with their names, in the order of the pod sets.
    pub(super) fn pod_templates(&self) -> impl Iterator<Item = (&'static str, &PodTemplate)> {
        let leader = self.leader.iter().map(|template| (LEADER, template));
        leader.chain([(WORKER, &self.worker)])
    }

    pub(super) fn has_leader_template(&self) -> bool {
        self.leader.is_some()
    }

    fn number(&self, pointer: &str) -> u32 {
        let number = self.object.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Replicas that an update may have in addition: a number, or a share of all that is rounded up.
    fn surge(&self, replicas: u32) -> u32 {
        let at = "/spec/rolloutStrategy/rollingUpdateConfiguration/maxSurge";
        let share = self.object.pointer(at).and_then(Value::as_str);
        let percent = share.and_then(|text| text.strip_suffix('%')?.parse::<u64>().ok());
        match percent {
            Some(percent) => {
                let surge = (u64::from(replicas) * percent.min(100)).div_ceil(100);
                u32::try_from(surge).unwrap_or(u32::MAX)
            }
            None => self.number(at),
        }
    }

    fn pod_set(&self, name: &str, template: &PodTemplate, count: i64, gates: JobGates) -> PodSet {
        let mut template = template.clone();
        container_env::deduplicate(&mut template);
        if let Some(metadata) = &mut template.metadata {
            // What the operator writes differs from replica to replica.
            metadata.labels.retain(|key, _| !is_of_operator(key));
            metadata.annotations.retain(|key, _| !is_of_operator(key));
        }
        // A leader is one pod and has no rank among others.
        let labels = PodIndexLabels {
            pod: (name != members::LEADER_ROLE).then_some(WORKER_INDEX),
            ..PodIndexLabels::default()
        };
        PodSet {
            name: name.to_owned(),
            count: Some(i32::try_from(count).unwrap_or(i32::MAX)),
            min_count: None,
            topology_request: topology_request::of_template(&template, labels, gates),
            template,
        }
    }

    /// Everything but the metadata.
    pub(crate) fn stored(&self) -> &Value {
        &self.object
    }

    /// The defaults of a new or changed set: its own labels, and the templates.
    pub(crate) fn defaults_by(&self, facts: DefaultingFacts, gates: JobGates) -> Vec<PatchAdd> {
        defaulting::of_set(self, facts, gates)
    }

    /// Whether the webhook has marked the templates.
    pub(super) fn is_marked(&self) -> bool {
        let annotations = self.worker.metadata.as_ref().map(|metadata| &metadata.annotations);
        let parent = annotations.and_then(|all| all.get(POD_SUSPENDING_PARENT));
        parent.is_some_and(|parent| parent == FRAMEWORK)
    }
}

/// Whether a label or annotation is the operator's, except for the name of the set.
fn is_of_operator(key: &str) -> bool {
    key.starts_with("leaderworkerset.sigs.k8s.io/") && key != NAME_LABEL
}

fn template_of<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.pointer("/spec/leaderWorkerTemplate")?.get(name).filter(|value| !value.is_null())
}

/// A set has no switch. What starts and stops are the groups of its replicas.
impl GenericJob for LeaderWorkerSet {
    fn kind(&self) -> &Kind {
        kind()
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

    /// Until a replica is ready the queue name may be changed, as for a suspended job.
    fn spec_suspended(&self) -> bool {
        self.number("/status/readyReplicas") == 0
    }

    fn to_suspended(&self) -> Self {
        self.clone()
    }

    fn managed_by(&self) -> Option<&str> {
        None
    }

    fn is_suspended(&self) -> bool {
        self.spec_suspended()
    }

    /// Those of one replica.
    fn pod_sets(&self, gates: JobGates) -> Vec<PodSet> {
        let size = self.size();
        match &self.leader {
            None => vec![self.pod_set(members::MAIN_ROLE, &self.worker, size, gates)],
            Some(leader) => {
                let leader = self.pod_set(members::LEADER_ROLE, leader, 1, gates);
                // Of a replica of one pod it is empty, as upstream's.
                let n_workers = (size - 1).max(0);
                let worker = self.pod_set(members::WORKER_ROLE, &self.worker, n_workers, gates);
                vec![leader, worker]
            }
        }
    }

    fn set_size(&self) -> Option<SetSize> {
        let replicas = u32::try_from(self.replicas().max(0)).unwrap_or(u32::MAX);
        let surge = self.surge(replicas);
        let updates = surge > 0 && self.number("/status/updatedReplicas") < replicas;
        let updating = if updates { self.number("/status/replicas") } else { 0 };
        Some(SetSize::Replicas { replicas, surge, updating })
    }

    fn replica_of(&self, pod: &Pod) -> Option<u32> {
        members::replica_of(pod)
    }

    fn adopted(&self, pod: &Pod, gates: JobGates) -> Option<Pod> {
        members::adopted(self, pod, gates)
    }

    fn templates(&self) -> Vec<AnnotatedTemplate<'_>> {
        let counted = self.pod_templates().map(|(name, template)| {
            let count = match (name, self.has_leader_template()) {
                (LEADER, _) => 1,
                (_, true) => self.size() - 1,
                (_, false) => self.size(),
            };
            AnnotatedTemplate {
                path: format!("spec.leaderWorkerTemplate.{name}.metadata"),
                annotations: template.metadata.as_ref().map(|metadata| &*metadata.annotations),
                count: i32::try_from(count).unwrap_or(i32::MAX),
            }
        });
        counted.collect()
    }

    fn run_with_pod_sets_info(&mut self, _: &[PodSetInfo], _: JobGates) -> Result<(), StartError> {
        Ok(())
    }

    fn restore_pod_sets_info(&mut self, _: &[PodSetInfo], _: JobGates) -> bool {
        false
    }

    fn next_stop_write(&self, _: &Stop<'_>, _: JobGates) -> Option<StopWrite<Self>> {
        None
    }

    fn remote_job(&self, _: &[PodSet], _: JobGates) -> Self {
        let mut copy = self.clone();
        copy.metadata = metadata_for_creation(&self.metadata);
        if let Some(fields) = copy.object.as_object_mut() {
            fields.remove("status");
        }
        copy
    }

    fn hold_pods(&mut self) {
        for name in [LEADER, WORKER] {
            let at = format!("/spec/leaderWorkerTemplate/{name}");
            if let Some(template) = self.object.pointer_mut(&at) {
                set_copies::hold_pods(template);
            }
        }
    }

    fn stays_gated_when_dispatched(&self) -> bool {
        true
    }

    /// The status of a set is that of its own cluster (docs/reference/multikueue.md §2.7).
    fn with_remote_status(&self, _: &Self) -> Self {
        self.clone()
    }

    fn with_idle_status(&self) -> Option<Self> {
        None
    }

    fn has_started(&self) -> bool {
        !self.spec_suspended()
    }

    /// A set serves.
    fn finished(&self) -> Option<JobOutcome> {
        None
    }

    fn is_active(&self) -> bool {
        !self.spec_suspended()
    }

    fn pods_ready(&self) -> bool {
        // The groups of its Workloads answer for their pods.
        false
    }

    fn defaults(&self, _: JobGates) -> Vec<PatchAdd> {
        Vec::new()
    }

    /// Without a leader there is one pod set.
    fn checks(&self) -> JobChecks {
        JobChecks { pod_set_groups: self.has_leader_template(), ..JobChecks::default() }
    }

    fn validate_create(&self, _: JobGates) -> Errors {
        validate::create(self)
    }

    fn is_job(&self) -> bool {
        false
    }

    fn validate_update(&self, old: &Self, gates: JobGates) -> Errors {
        validate::update(self, old, gates)
    }
}
