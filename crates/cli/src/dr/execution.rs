//! Executes a plan: one Workload after the other, one write after the other. [`RebuildProgress::next`] decides which.

use std::collections::BTreeMap;

use crds::{
    names::{ADMISSION_MANAGER, INCARNATION_CONFIG_MAP, SLUICECTL, incarnation},
    v1alpha1::{ClusterCapacity, LOCAL},
    v1beta2::{Workload, WorkloadStatus},
};
use jobs::{GenericJob, JobObject, rebuilt::original_workload};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams},
};
use runtime::failpoint::with_failpoints;
use serde_json::{Value, json};

use super::{
    RebuildFailure, body,
    copies::CopySet,
    observed::{HubStamp, ObservedHub, job_name, object_name},
    plan::WorkloadRebuild,
    reading::{decoded, resource, stamp_of},
    step::{CopyRole, RebuildProgress, RebuildStep},
};
use crate::requests::{RequestFailure, object_name as named};

/// Makes the record of the incarnation, as the first leader would.
///
/// # Errors
/// If it cannot be made.
pub async fn make_incarnation(
    client: &Client,
    namespace: &str,
    second: i64,
) -> Result<HubStamp, RebuildFailure> {
    let number = second.to_string();
    let data = [(incarnation::NUMBER, &number), (incarnation::TERM, &number)];
    let data = data.map(|(key, value)| (key.to_owned(), value.clone()));
    let metadata = ObjectMeta {
        name: Some(INCARNATION_CONFIG_MAP.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectMeta::default()
    };
    let record = ConfigMap { metadata, data: Some(data.into()), ..ConfigMap::default() };
    let object = format!("ConfigMap {namespace}/{INCARNATION_CONFIG_MAP}");
    let failed = RequestFailure::of("create", object.clone());
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let params = PostParams::default();
    let made = with_failpoints("rebuild-incarnation", api.create(&params, &record)).await;
    let made = made.map_err(failed)?;
    let reason = "it has no numbers".to_owned();
    stamp_of(&made).ok_or(RebuildFailure::Undecodable { object, reason })
}

/// Names the manager cluster in the entry of the origin on a worker.
///
/// # Errors
/// If the request fails.
pub async fn take_entry_over(
    worker: &Client,
    origin: &str,
    uid: &str,
) -> Result<(), RebuildFailure> {
    let object = || format!("ClusterCapacity {LOCAL}");
    let api: Api<ClusterCapacity> = Api::all(worker.clone());
    let capacity = api.get(LOCAL).await.map_err(RequestFailure::of("get", object()))?;
    let mut managers = capacity.spec.managers;
    let entries = managers.iter_mut().filter(|entry| entry.origin == origin);
    entries.for_each(|entry| uid.clone_into(&mut entry.cluster));
    // Each manager writes the list of all: the version keeps the entries of others.
    let version = capacity.metadata.resource_version;
    let fields =
        json!({ "metadata": { "resourceVersion": version }, "spec": { "managers": managers } });
    let params = PatchParams::default();
    let patch = Patch::Merge(&fields);
    let write = api.patch(LOCAL, &params, &patch);
    with_failpoints("rebuild-entry", write).await.map_err(RequestFailure::of("patch", object()))?;
    Ok(())
}

/// The rebuild of one Workload.
pub struct RebuildRun<'a> {
    /// The manager cluster.
    pub hub: &'a Client,
    /// Clients of workers, by the name of the MultiKueueCluster.
    pub workers: &'a BTreeMap<String, Client>,
    /// The manager as copies name it.
    pub stamp: &'a HubStamp,
    /// What is rebuilt.
    pub rebuild: &'a WorkloadRebuild,
    /// What is there of it.
    pub progress: RebuildProgress,
}

impl<'a> RebuildRun<'a> {
    /// The run that continues from what was observed.
    #[must_use]
    pub fn new(
        (hub, workers): (&'a Client, &'a BTreeMap<String, Client>),
        stamp: &'a HubStamp,
        rebuild: &'a WorkloadRebuild,
        observed: &ObservedHub,
    ) -> Self {
        let workload = observed.workloads.get(&object_name(&rebuild.copy.clone.metadata));
        let jobs = rebuild.jobs.iter().map(|job| observed.jobs.get(&job_name(job)).cloned());
        let progress = RebuildProgress {
            jobs: jobs.collect(),
            workload: workload.cloned(),
            copy: rebuild.copy.clone(),
            others: rebuild.others.clone(),
        };
        Self { hub, workers, stamp, rebuild, progress }
    }

    /// Takes all steps that are left.
    ///
    /// # Errors
    /// If a request fails. What was written stays, and the next run continues.
    pub async fn finish(mut self) -> Result<(), RebuildFailure> {
        while let Some(step) = self.progress.next(self.stamp) {
            with_failpoints(step.purpose(), self.take(step)).await?;
        }
        Ok(())
    }

    async fn take(&mut self, step: RebuildStep) -> Result<(), RebuildFailure> {
        match step {
            RebuildStep::CreateJob(number) => self.create_job(number).await,
            RebuildStep::CreateWorkload => self.create_workload().await,
            RebuildStep::Reserve => self.write_status(body::reserved).await,
            RebuildStep::Admit => self.write_status(body::admitted).await,
            RebuildStep::StampJob(role, number) => self.stamp_job(role, number).await,
            RebuildStep::StampClone(role) => self.stamp_clone(role).await,
            RebuildStep::UnmarkJob(number) => self.unmark_job(number).await,
            RebuildStep::UnmarkWorkload => self.unmark_workload().await,
        }
    }

    async fn create_job(&mut self, number: usize) -> Result<(), RebuildFailure> {
        let (Some(job), Some(made)) =
            (self.rebuild.jobs.get(number), self.progress.jobs.get_mut(number))
        else {
            return Ok(());
        };
        let undecodable = |error: serde_json::Error| RebuildFailure::Undecodable {
            object: named(job.kind().name(), job.metadata()),
            reason: error.to_string(),
        };
        let object: DynamicObject = serde_json::from_value(job.to_create()).map_err(undecodable)?;
        let failed = RequestFailure::of("create", named(job.kind().name(), job.metadata()));
        let answer = jobs_in(self.hub, job).create(&PostParams::default(), &object).await;
        *made = Some(decoded(job.kind(), &answer.map_err(failed)?)?);
        Ok(())
    }

    async fn create_workload(&mut self) -> Result<(), RebuildFailure> {
        let jobs: Vec<JobObject> = self.progress.jobs.iter().flatten().cloned().collect();
        let workload = original_workload(&self.rebuild.copy.clone, &jobs);
        let failed = RequestFailure::of("create", named("Workload", &workload.metadata));
        let api = workloads_in(self.hub, &workload);
        let made = api.create(&PostParams::default(), &workload).await.map_err(failed)?;
        self.progress.workload = Some(made);
        Ok(())
    }

    async fn write_status(
        &mut self,
        next: impl Fn(&Workload, &WorkloadRebuild) -> WorkloadStatus,
    ) -> Result<(), RebuildFailure> {
        let Some(workload) = &self.progress.workload else { return Ok(()) };
        let fields = body::status(workload, &next(workload, self.rebuild));
        let failed =
            RequestFailure::of("write the status of", named("Workload", &workload.metadata));
        let name = workload.metadata.name.as_deref().unwrap_or_default();
        // The manager's field manager: a field of another one would stay when the manager gives it up.
        let params = PatchParams::apply(ADMISSION_MANAGER).force();
        let api = workloads_in(self.hub, workload);
        let written = api.patch_status(name, &params, &Patch::Apply(&fields)).await;
        self.progress.workload = Some(written.map_err(failed)?);
        Ok(())
    }

    async fn stamp_job(&mut self, role: CopyRole, number: usize) -> Result<(), RebuildFailure> {
        let (Some(workload), Some(set)) = (&self.progress.workload, self.set(role)) else {
            return Ok(());
        };
        let (Some(job), Some(worker)) = (set.jobs.get(number), self.workers.get(&set.cluster))
        else {
            return Ok(());
        };
        let fields = body::stamps(job.metadata(), workload, self.stamp);
        let stamped = patch_job(worker, job, &fields).await?;
        if let Some(place) = self.set_mut(role).and_then(|set| set.jobs.get_mut(number)) {
            *place = stamped;
        }
        Ok(())
    }

    async fn stamp_clone(&mut self, role: CopyRole) -> Result<(), RebuildFailure> {
        let (Some(workload), Some(set)) = (&self.progress.workload, self.set(role)) else {
            return Ok(());
        };
        let Some(worker) = self.workers.get(&set.cluster) else { return Ok(()) };
        let fields = body::stamps(&set.clone.metadata, workload, self.stamp);
        let stamped = patch_workload(worker, &set.clone, &fields).await?;
        if let Some(set) = self.set_mut(role) {
            set.clone = stamped;
        }
        Ok(())
    }

    async fn unmark_job(&mut self, number: usize) -> Result<(), RebuildFailure> {
        let Some(Some(job)) = self.progress.jobs.get_mut(number) else { return Ok(()) };
        let fields = body::unmarked(job.metadata());
        *job = patch_job(self.hub, job, &fields).await?;
        Ok(())
    }

    async fn unmark_workload(&mut self) -> Result<(), RebuildFailure> {
        let Some(workload) = &self.progress.workload else { return Ok(()) };
        let fields = body::unmarked(&workload.metadata);
        self.progress.workload = Some(patch_workload(self.hub, workload, &fields).await?);
        Ok(())
    }

    fn set(&self, role: CopyRole) -> Option<&CopySet> {
        match role {
            CopyRole::Chosen => Some(&self.progress.copy),
            CopyRole::Other(number) => self.progress.others.get(number),
        }
    }

    fn set_mut(&mut self, role: CopyRole) -> Option<&mut CopySet> {
        match role {
            CopyRole::Chosen => Some(&mut self.progress.copy),
            CopyRole::Other(number) => self.progress.others.get_mut(number),
        }
    }
}

fn workloads_in(client: &Client, workload: &Workload) -> Api<Workload> {
    Api::namespaced(client.clone(), workload.metadata.namespace.as_deref().unwrap_or_default())
}

fn jobs_in(client: &Client, job: &JobObject) -> Api<DynamicObject> {
    let namespace = job.metadata().namespace.as_deref().unwrap_or_default();
    Api::namespaced_with(client.clone(), namespace, &resource(job.kind()))
}

fn merge_params() -> PatchParams {
    PatchParams { field_manager: Some(SLUICECTL.to_owned()), ..PatchParams::default() }
}

async fn patch_job(
    client: &Client,
    job: &JobObject,
    fields: &Value,
) -> Result<JobObject, RebuildFailure> {
    let failed = RequestFailure::of("patch", named(job.kind().name(), job.metadata()));
    let name = job.metadata().name.as_deref().unwrap_or_default();
    let api = jobs_in(client, job);
    let answer = api.patch(name, &merge_params(), &Patch::Merge(fields)).await.map_err(failed)?;
    decoded(job.kind(), &answer)
}

async fn patch_workload(
    client: &Client,
    workload: &Workload,
    fields: &Value,
) -> Result<Workload, RebuildFailure> {
    let failed = RequestFailure::of("patch", named("Workload", &workload.metadata));
    let name = workload.metadata.name.as_deref().unwrap_or_default();
    let api = workloads_in(client, workload);
    Ok(api.patch(name, &merge_params(), &Patch::Merge(fields)).await.map_err(failed)?)
}
