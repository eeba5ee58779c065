//! The submitted Jobs: the samples, and generated small ones after the first of them.

use anyhow::{Context, Result, ensure};
use e2e::installation;
use futures::{StreamExt, TryStreamExt, stream};
use harness::annotation;
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt, api::PostParams};

use crate::environment::DemoEnvironment;

/// The sample that no worker can hold.
pub(crate) const TOO_LARGE: &str = "too-large";

/// The generated Jobs follow this sample.
const MODEL: &str = "small-1";

/// Maximum number of creates in flight.
const AT_A_TIME: usize = 8;

/// Jobs, in the order in which they are submitted.
pub(crate) struct Batch {
    jobs: Vec<Job>,
}

/// Reads the samples and adds `more` small Jobs.
pub(crate) async fn read(stage: &DemoEnvironment<'_>, more: usize) -> Result<Batch> {
    let folder = installation::root().join("config/samples/multikueue/jobs").display().to_string();
    let built = stage.installation.hub.kubectl(&["kustomize", &folder]).await?;
    let mut jobs: Vec<Job> = serde_saphyr::from_multiple(&built).context("reading the samples")?;
    // First, to show that it blocks no other Job.
    jobs.sort_by_key(|job| job.name_any() != TOO_LARGE);
    ensure!(jobs.first().is_some_and(|job| job.name_any() == TOO_LARGE), "no Job {TOO_LARGE}");
    let model = jobs.iter().find(|job| job.name_any() == MODEL);
    let model = model.with_context(|| format!("no Job {MODEL}"))?.clone();
    let taken = jobs.iter().filter(|job| job.name_any().starts_with("small-")).count();
    jobs.extend((1..=more).map(|number| like(&model, taken + number)));
    Ok(Batch { jobs })
}

/// A Job like the model, of another size: one to four pods of one to eight CPUs, for two to seven seconds.
fn like(model: &Job, number: usize) -> Job {
    let mut job = model.clone();
    job.metadata.name = Some(format!("small-{number}"));
    let Some(spec) = &mut job.spec else {
        return job;
    };
    let pods = i32::try_from(number % 4).unwrap_or_default() + 1;
    (spec.parallelism, spec.completions) = (Some(pods), Some(pods));
    let template = &mut spec.template;
    let seconds = (2 + number % 6).to_string();
    let annotations = template.metadata.get_or_insert_default().annotations.get_or_insert_default();
    annotations.insert(annotation::RUN_SECONDS.to_owned(), seconds);
    let containers = template.spec.iter_mut().flat_map(|pod| &mut pod.containers);
    for requests in containers.filter_map(|one| one.resources.as_mut()?.requests.as_mut()) {
        requests.entry("cpu".to_owned()).or_default().0 = (1 << (number % 4)).to_string();
    }
    job
}

impl Batch {
    /// Submits all of them.
    pub(crate) async fn submit(&self, jobs: &Api<Job>) -> Result<()> {
        let params = PostParams::default();
        let creates = self.jobs.iter().map(|job| async {
            let created = jobs.create(&params, job).await;
            created.map(drop).with_context(|| format!("submitting Job {}", job.name_any()))
        });
        stream::iter(creates).buffered(AT_A_TIME).try_collect::<()>().await
    }

    /// Their names, and how many of their pods must succeed.
    pub(crate) fn work(&self) -> impl Iterator<Item = (String, usize)> {
        self.jobs.iter().map(|job| {
            let completions = job.spec.as_ref().and_then(|spec| spec.completions).unwrap_or(1);
            (job.name_any(), usize::try_from(completions).unwrap_or_default())
        })
    }
}
