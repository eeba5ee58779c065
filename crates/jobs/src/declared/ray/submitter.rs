//! The pod that submits a RayJob to its RayCluster: a pod of its own, which the operator runs by a Job.

use crds::pod::{Container, PodSpec, PodTemplate, ResourceRequirements};
use serde_json::Value;

use super::{
    RaySpec,
    additions::{amounts, head_image},
};
use crate::{
    declared::declared_pod_set::{DeclaredPodSet, IndexLabels, decode_template},
    pointer::Pointer,
};

impl RaySpec {
    /// The pod set of the submitter; `None` if the RayJob is submitted in another way.
    ///
    /// # Errors
    /// If a template does not decode.
    pub(in crate::declared) fn submitter(
        &self,
        object: &Value,
    ) -> Result<Option<DeclaredPodSet>, String> {
        let Some(job) = &self.job else { return Ok(None) };
        // In SidecarMode the submitter is a container of the head; the other modes have none.
        let is_run_by_job = self.submission_mode(object) == Some("K8sJobMode");
        let Some(cluster) = self.cluster.get(object).filter(|_| is_run_by_job) else {
            return Ok(None);
        };
        let at = job.join(&Pointer::of(&["submitterPodTemplate"]));
        let template = match at.get(object) {
            Some(own) => decode_template(Some(own), &at)?,
            None => usual_template(cluster)?,
        };
        Ok(Some(DeclaredPodSet {
            name: "submitter".to_owned(),
            path: at.field_path(),
            at,
            template,
            base: None,
            replicas: 1,
            pods_per_replica: 1,
            written: None,
            called: None,
            n_groups: None,
            index_labels: IndexLabels::default(),
        }))
    }
}

/// The container that submits a RayJob, unless the RayJob has a template for it.
pub(super) fn container(image: Option<&Value>) -> Container {
    let resources = ResourceRequirements {
        limits: amounts(1000, 1024),
        requests: amounts(500, 200),
        ..ResourceRequirements::default()
    };
    Container {
        name: "ray-job-submitter".to_owned(),
        resources: Some(resources.into()),
        rest: image.map(|image| ("image".to_owned(), image.clone())).into_iter().collect(),
        ..Container::default()
    }
}

/// The template that the operator uses. A start writes it, because the pod has to get the nodes of its flavor.
fn usual_template(cluster: &Value) -> Result<PodTemplate, String> {
    let at = Pointer::of(&["headGroupSpec", "template"]);
    let head = decode_template(at.get(cluster), &at)?;
    let image = head.spec.as_deref().and_then(head_image);
    let never = ("restartPolicy".to_owned(), Value::from("Never"));
    let spec = PodSpec {
        containers: vec![container(image.as_ref())],
        rest: [never].into_iter().collect(),
        ..PodSpec::default()
    };
    Ok(PodTemplate { metadata: None, spec: Some(spec.into()) })
}
