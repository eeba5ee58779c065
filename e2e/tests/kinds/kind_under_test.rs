//! The kinds that the suite runs for, and what the suite knows of each beside its definition.

use anyhow::{Context, Result};
use harness::annotation;
use jobs::{Kind, Kinds};
use serde_json::{Value, json};

/// The group of the made-up kind with a CRD from the start.
pub(crate) const TRAINING: &str = "example.com";

/// A kind, and where its objects show what the suite asserts. Nothing here is read from the definition.
pub(crate) struct KindUnderTest {
    pub(crate) kind: Kind,
    /// The switch.
    pub(crate) suspend: &'static str,
    /// Names of pod sets with their numbers of pods.
    pub(crate) pod_sets: &'static [(&'static str, i32)],
    /// The templates of these pod sets.
    pub(crate) templates: &'static [&'static str],
    /// The spec of a job with pods of this template.
    spec: fn(&Value) -> Value,
    /// The object that a job needs beside itself.
    needed: Option<fn(&JobPlan) -> Value>,
    /// Whether a job has succeeded or failed.
    pub(crate) succeeded: fn(&Value) -> Option<bool>,
    /// Numbers of active pods or replicas.
    active: fn(&Value) -> Vec<Value>,
}

/// A job of the suite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobPlan {
    pub(crate) name: &'static str,
    /// Run time of its pods in seconds.
    pub(crate) seconds: u32,
    pub(crate) exit_code: u32,
}

impl JobPlan {
    /// A job that succeeds.
    pub(crate) fn of(name: &'static str, seconds: u32) -> Self {
        Self { name, seconds, exit_code: 0 }
    }
}

impl KindUnderTest {
    pub(crate) fn job() -> Result<Self> {
        Ok(Self {
            kind: built_in("batch/job")?,
            suspend: "/spec/suspend",
            pod_sets: &[("main", 3)],
            templates: &["/spec/template"],
            needed: None,
            spec: |template| json!({"parallelism": 3, "completions": 3, "backoffLimit": 0, "template": template}),
            succeeded: |job| by_condition(job, "Complete"),
            active: |job| job.pointer("/status/active").cloned().into_iter().collect(),
        })
    }

    pub(crate) fn job_set() -> Result<Self> {
        Ok(Self {
            kind: built_in("jobset.x-k8s.io/jobset")?,
            suspend: "/spec/suspend",
            pod_sets: &[("driver", 1), ("worker", 2)],
            templates: &[
                "/spec/replicatedJobs/0/template/spec/template",
                "/spec/replicatedJobs/1/template/spec/template",
            ],
            needed: None,
            spec: |template| {
                let job = json!({"parallelism": 1, "completions": 1, "template": template});
                json!({"replicatedJobs": [
                    {"name": "driver", "template": {"spec": job}},
                    {"name": "worker", "replicas": 2, "template": {"spec": job}},
                ]})
            },
            succeeded: |job| by_condition(job, "Completed"),
            active: |job| {
                let sets = job.pointer("/status/replicatedJobsStatus").and_then(Value::as_array);
                sets.into_iter().flatten().map(|set| set["active"].clone()).collect()
            },
        })
    }

    /// Over clusters upstream's webhooks refuse every copy of it, so that no recording shows its life there.
    pub(crate) fn jax_job() -> Result<Self> {
        Ok(Self {
            kind: built_in("kubeflow.org/jaxjob")?,
            suspend: "/spec/runPolicy/suspend",
            pod_sets: &[("worker", 2)],
            templates: &["/spec/jaxReplicaSpecs/Worker/template"],
            needed: None,
            spec: |template| {
                let workers =
                    json!({"replicas": 2, "restartPolicy": "Never", "template": template});
                json!({"runPolicy": {}, "jaxReplicaSpecs": {"Worker": workers}})
            },
            succeeded: |job| by_condition(job, "Succeeded"),
            active: |job| {
                let types = job.pointer("/status/replicaStatuses").and_then(Value::as_object);
                types.into_iter().flatten().map(|(_, one)| one["active"].clone()).collect()
            },
        })
    }

    /// The made-up kind, in this group.
    pub(crate) fn training(group: &str) -> Result<Self> {
        Ok(Self {
            kind: Kind::parse(&training_definition(group))?,
            suspend: "/spec/run/suspend",
            pod_sets: &[("driver", 1), ("worker", 2)],
            templates: &["/spec/driver/template", "/spec/worker/template"],
            needed: None,
            spec: |template| {
                json!({
                    "driver": {"template": template},
                    "worker": {"replicas": 2, "template": template},
                })
            },
            succeeded: |job| match job.pointer("/status/state")?.as_str()? {
                "Done" => Some(true),
                "Broken" => Some(false),
                _ => None,
            },
            active: |job| {
                let sets = job.pointer("/status/running").and_then(Value::as_object);
                sets.into_iter().flat_map(|sets| sets.values().cloned()).collect()
            },
        })
    }

    /// The made-up kind with templates in another object, which has the name of the job.
    pub(crate) fn course() -> Result<Self> {
        let training = Self::training(TRAINING)?;
        Ok(Self {
            kind: Kind::parse(COURSE)?,
            suspend: "/spec/suspend",
            templates: &["/spec/additions/driver", "/spec/additions/worker"],
            spec: |_| json!({"workers": 2}),
            needed: Some(|plan| {
                let template = template(plan);
                json!({
                    "apiVersion": "example.com/v1", "kind": "Recipe",
                    "metadata": {"name": plan.name},
                    "spec": {"driver": template, "worker": template},
                })
            }),
            ..training
        })
    }

    /// The object that a job needs beside itself, if any.
    pub(crate) fn needed_by(&self, plan: &JobPlan) -> Option<Value> {
        self.needed.map(|object| object(plan))
    }

    /// A template as jobs of the suite have it.
    pub(crate) fn template_of(plan: &JobPlan) -> Value {
        template(plan)
    }

    /// A job without a queue name.
    pub(crate) fn job_of(&self, plan: &JobPlan) -> Value {
        let mut job = json!({
            "apiVersion": self.kind.api_version(), "kind": self.kind.name(),
            "metadata": {"name": plan.name},
            "spec": (self.spec)(&template(plan)),
        });
        for rule in self.kind.lookups() {
            rule.at.set(&mut job, json!(plan.name));
        }
        job
    }

    /// Number of pods of a job.
    pub(crate) fn pods(&self) -> usize {
        self.pod_sets.iter().map(|(_, count)| usize::try_from(*count).unwrap_or_default()).sum()
    }

    pub(crate) fn is_suspended(&self, job: &Value) -> bool {
        job.pointer(self.suspend) == Some(&json!(true))
    }

    pub(crate) fn is_active(&self, job: &Value) -> bool {
        (self.active)(job).iter().any(|number| number.as_i64() > Some(0))
    }

    pub(crate) fn templates_of(&self, job: &Value) -> Vec<Value> {
        let templates = self.templates.iter().map(|at| job.pointer(at).cloned());
        templates.map(Option::unwrap_or_default).collect()
    }
}

/// The definition of the made-up kind, in this group.
pub(crate) fn training_definition(group: &str) -> String {
    in_group(include_str!("training.yaml"), group)
}

/// The CRD of the made-up kind, in this group.
pub(crate) fn training_crd(group: &str) -> String {
    in_group(include_str!("training-crd.yaml"), group)
}

/// The definition of the made-up kind with templates in another object.
pub(crate) const COURSE: &str = include_str!("course.yaml");

/// Its CRD, and that of the other object.
pub(crate) const COURSE_CRD: &str = include_str!("course-crd.yaml");

/// The CRDs of the training operator.
pub(crate) const KUBEFLOW_CRDS: &str = include_str!("kubeflow-crds.yaml");

/// The CRD of JobSet.
pub(crate) const JOB_SET_CRD: &str = include_str!("jobset-crd.yaml");

fn in_group(text: &str, group: &str) -> String {
    text.replace(TRAINING, group)
}

fn built_in(framework: &str) -> Result<Kind> {
    Kinds::built_in().of_framework(framework).cloned().context("a built-in kind")
}

fn by_condition(job: &Value, success: &str) -> Option<bool> {
    let conditions = job.pointer("/status/conditions")?.as_array()?;
    let is_true =
        |name: &str| conditions.iter().any(|one| one["type"] == name && one["status"] == "True");
    if is_true(success) { Some(true) } else { is_true("Failed").then_some(false) }
}

/// A template with fields that a decoder would write differently, and one that it does not know.
fn template(plan: &JobPlan) -> Value {
    let (seconds, code) = (plan.seconds.to_string(), plan.exit_code.to_string());
    json!({
        "metadata": {"annotations": {annotation::RUN_SECONDS: seconds, annotation::EXIT_CODE: code}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "main", "image": "main", "env": [],
                "resources": {"requests": {"cpu": "1000m"}, "limits": {}},
            }],
            "fieldOfLaterVersions": {"a": 1},
        },
    })
}
