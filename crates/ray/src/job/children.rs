//! The objects that a RayJob needs: its cluster, the Service of the present head, and the Job that submits.
//!
//! Source: docs/reference/ray.md §8 "Children of RayJob".

use serde_json::{Value, json};

use super::submission::{Submitter, metadata_problem, submitter_container};
use crate::{
    cluster::{
        ClusterContext, add_token, add_token_volume, dashboard_address, head_service_of,
        label_value, of_cluster, token_secret,
    },
    json::{field, items, list, name, object, text, texts},
    names,
    settings::OperatorSettings,
    v1::{RayClusterSpec, RayJobSpec},
};

/// How often a submitter that failed is repeated.
const SUBMITTER_RETRIES: i32 = 2;

/// One attempt of a RayJob. Each attempt has a cluster of its own and a new id in Ray.
#[derive(Clone, Copy, Debug)]
pub struct JobAttempt<'a> {
    /// The RayJob.
    pub job: &'a Value,
    /// Its spec.
    pub spec: &'a RayJobSpec,
    /// The name of the cluster.
    pub cluster_name: &'a str,
    /// The id in Ray.
    pub job_id: &'a str,
    /// `host:port` of the dashboard, as the status has it; empty before the cluster is ready.
    pub dashboard_url: &'a str,
    /// Settings.
    pub settings: &'a OperatorSettings,
}

impl JobAttempt<'_> {
    /// The cluster to make.
    #[must_use]
    pub fn ray_cluster(&self) -> Value {
        let mode = self.spec.submission_mode.as_str();
        let mut labels = json!(texts(&self.job["metadata"]["labels"]));
        // After the labels of the RayJob, because the cluster is found by these.
        for (key, value) in self.origin_labels().as_object().into_iter().flatten() {
            labels[key] = value.clone();
        }
        labels[names::SUBMISSION_MODE_LABEL] = json!(mode);
        // As recorded, all annotations are copied, also kubectl's.
        let mut annotations = json!(texts(&self.job["metadata"]["annotations"]));
        let mut spec = self.job["spec"]["rayClusterSpec"].clone();
        if mode == "SidecarMode" {
            // A new head would know nothing of the job.
            annotations[names::NO_HEAD_RESTART] = json!("true");
            self.add_sidecar(&mut spec);
        }
        let mut metadata = json!({
            "name": self.cluster_name,
            "namespace": self.job["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [self.owner_reference()],
        });
        if annotations != json!({}) {
            metadata["annotations"] = annotations;
        }
        json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec})
    }

    fn add_sidecar(&self, spec: &mut Value) {
        let cluster = json!({"metadata": {"name": self.cluster_name}, "spec": spec.clone()});
        let container = of_cluster(&cluster, self.settings, |context| {
            let mut container = default_container(context.spec);
            let submitter = Submitter::beside_head(self, context);
            submitter_container(self, &submitter, &mut container);
            add_token(context, &mut container);
            container
        });
        let Ok(container) = container else { return };
        let pod = field(field(field(spec, "headGroupSpec"), "template"), "spec");
        list(pod, "containers").push(container);
        // A head with containers that start again would not know the job.
        object(pod).insert("restartPolicy".to_owned(), json!("Never"));
    }

    /// The Job with the pod that submits to the cluster.
    ///
    /// # Errors
    /// The spec of the cluster does not decode, its Ray cannot take the metadata of the job, or its dashboard cannot be reached.
    pub fn submitter_job(&self, cluster: &Value) -> Result<Value, String> {
        if let Some(problem) = metadata_problem(self.spec) {
            return Err(problem.to_owned());
        }
        let template = of_cluster(cluster, self.settings, |context| self.template(context))??;
        let retries = self.spec.submitter_config.as_ref().and_then(|it| it.backoff_limit);
        Ok(json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": name(self.job),
                "namespace": self.job["metadata"]["namespace"],
                "labels": self.submitter_labels(),
                "ownerReferences": [self.owner_reference()],
            },
            "spec": {"backoffLimit": retries.unwrap_or(SUBMITTER_RETRIES), "template": template},
        }))
    }

    /// Whether a Job submits the job of this attempt to the present head.
    #[must_use]
    pub fn has_submitter(&self, job: &Value) -> bool {
        let containers = items(&job["spec"]["template"]["spec"]["containers"]);
        let value_of = |wanted: &str| {
            let mut variables = containers.iter().flat_map(|it| items(&it["env"]));
            // The last of several variables of a name counts.
            let found = variables.rfind(|variable| variable["name"] == wanted);
            found.map_or("", |variable| text(&variable["value"]))
        };
        value_of("RAY_JOB_SUBMISSION_ID") == self.job_id
            && value_of("RAY_DASHBOARD_ADDRESS").ends_with(self.dashboard_url)
    }

    fn template(&self, context: &ClusterContext<'_>) -> Result<Value, String> {
        let submitter = Submitter::of_job(context)?;
        let mut template = match &self.spec.submitter_pod_template {
            Some(template) => template.clone(),
            None => default_template(context.spec),
        };
        let labels = field(field(&mut template, "metadata"), "labels");
        for (key, value) in self.submitter_labels().as_object().into_iter().flatten() {
            object(labels).insert(key.clone(), value.clone());
        }
        let pod = field(&mut template, "spec");
        // The default of pods is `Always`, which the API server refuses in a Job.
        if text(&pod["restartPolicy"]).is_empty() {
            object(pod).insert("restartPolicy".to_owned(), json!("Never"));
        }
        if let Some(container) = list(pod, "containers").first_mut() {
            submitter_container(self, &submitter, container);
            add_token(context, container);
        }
        add_token_volume(context, pod);
        Ok(template)
    }

    /// The Service of the present head. Its name stays the same over all attempts.
    ///
    /// # Errors
    /// The spec of the cluster does not decode.
    pub fn head_service(&self, cluster: &Value) -> Result<Value, String> {
        let mut service = of_cluster(cluster, self.settings, head_service_of)?;
        let metadata = object(field(&mut service, "metadata"));
        let mut labels = self.origin_labels();
        labels[names::NODE_TYPE_LABEL] = json!("head");
        labels[names::IDENTIFIER_LABEL] = json!(label_value(&format!("{}-head", name(self.job))));
        metadata.insert("name".to_owned(), json!(names::head_service_name(name(self.job))));
        metadata.insert("namespace".to_owned(), self.job["metadata"]["namespace"].clone());
        metadata.insert("labels".to_owned(), labels);
        metadata.insert("ownerReferences".to_owned(), json!([self.owner_reference()]));
        Ok(service)
    }

    fn origin_labels(&self) -> Value {
        json!({names::ORIGIN_KIND_LABEL: "RayJob", names::ORIGIN_NAME_LABEL: name(self.job)})
    }

    fn submitter_labels(&self) -> Value {
        let mut labels = self.origin_labels();
        labels[names::CREATED_BY_LABEL] = json!(names::CREATED_BY);
        labels
    }

    fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "name": self.job["metadata"]["name"],
            "uid": self.job["metadata"]["uid"],
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

/// `host:port` of the dashboard of the cluster's head.
///
/// # Errors
/// The spec of the cluster does not decode, or the Service of its head does not lead to the dashboard.
pub(super) fn dashboard_of(cluster: &Value, settings: &OperatorSettings) -> Result<String, String> {
    Ok(of_cluster(cluster, settings, dashboard_address)??)
}

/// The Secret with the token that the head of a cluster asks for.
pub(super) fn token_secret_of(cluster: &Value, settings: &OperatorSettings) -> Option<String> {
    of_cluster(cluster, settings, token_secret).ok().flatten()
}

/// The pod of a submitter without a template. It has the image of the head, and what the head needs to pull it.
fn default_template(spec: &RayClusterSpec) -> Value {
    let mut pod = json!({"containers": [default_container(spec)]});
    let secrets = &spec.head_group_spec.template["spec"]["imagePullSecrets"];
    if !items(secrets).is_empty() {
        pod["imagePullSecrets"] = secrets.clone();
    }
    json!({"spec": pod})
}

fn default_container(spec: &RayClusterSpec) -> Value {
    let head = &spec.head_group_spec.template["spec"]["containers"][0];
    let mut container = json!({
        "name": names::SUBMITTER_CONTAINER,
        "image": head["image"],
        "resources": {
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "200Mi"},
        },
    });
    let policy = &head["imagePullPolicy"];
    if !text(policy).is_empty() {
        container["imagePullPolicy"] = policy.clone();
    }
    container
}
