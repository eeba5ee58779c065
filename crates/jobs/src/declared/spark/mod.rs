//! Jobs with a driver and executors, of which the operator makes pods: SparkApplication (docs/reference/kueue.md §7.8).
//!
//! The pods of a role stand in no template: fields of the role are parts of them. A start writes these fields.
//!
//! | file | concept |
//! |---|---|
//! | `pods` | the pod template of a role, as far as Workloads have it |
//! | `memory` | amounts of memory in the notation of Java |
//! | `placement` | fields of a role that a start changes and a stop restores |

mod memory;
mod placement;
mod pods;
#[cfg(test)]
mod tests;

use crds::validation::{Errors, FieldError};
use memory::MemoryReading;
use serde::Deserialize;
use serde_json::Value;

use super::declared_pod_set::{DeclaredPodSet, IndexLabels};
use crate::pointer::Pointer;

/// The field of the status with the states of executors by name.
pub(crate) const EXECUTOR_STATE: &str = "executorState";

/// Where a job has an application.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SparkSpec {
    /// The spec of the application.
    pub application: Pointer,
}

/// The pods of one kind in an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Driver,
    Executor,
}

impl Role {
    const ALL: [Self; 2] = [Self::Driver, Self::Executor];

    /// Field of the application, and name of the pod set.
    fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Executor => "executor",
        }
    }

    /// The container of Spark.
    fn container(self) -> &'static str {
        match self {
            Self::Driver => "spark-kubernetes-driver",
            Self::Executor => "spark-kubernetes-executor",
        }
    }
}

impl SparkSpec {
    /// The field of a role.
    fn role(&self, role: Role) -> Pointer {
        self.application.join(&Pointer::of(&[role.name()]))
    }

    /// The pod sets of an application.
    ///
    /// # Errors
    /// If a field does not decode, or an amount is none.
    pub(super) fn pod_sets(&self, object: &Value) -> Result<Vec<DeclaredPodSet>, String> {
        self.pod_sets_by(object, memory::of_spark)
    }

    /// The pod sets of a former version, which read a bare number of memory as bytes. None if they are the same.
    pub(super) fn former_pod_sets(&self, object: &Value) -> Option<Vec<DeclaredPodSet>> {
        let is_bare = |role: &Role| {
            let memory = self.role(*role).join(&Pointer::of(&["memory"]));
            memory.text(object).is_some_and(memory::is_bare)
        };
        Role::ALL.iter().find(|role| is_bare(role))?;
        self.pod_sets_by(object, memory::as_quantity).ok()
    }

    fn pod_sets_by(
        &self,
        object: &Value,
        memory: MemoryReading,
    ) -> Result<Vec<DeclaredPodSet>, String> {
        let application = self.application.get(object).unwrap_or(&Value::Null);
        let sets = Role::ALL.into_iter().map(|role| {
            let at = self.role(role);
            let template = pods::template(application, role, memory)
                .map_err(|error| format!("{}: {error}", at.field_path()))?;
            Ok(DeclaredPodSet {
                name: role.name().to_owned(),
                path: at.field_path(),
                at,
                base: None,
                template,
                replicas: match role {
                    Role::Driver => 1,
                    Role::Executor => executors(application),
                },
                pods_per_replica: 1,
                written: None,
                called: None,
                n_groups: None,
                index_labels: IndexLabels::default(),
            })
        });
        sets.collect()
    }

    /// Whether the driver and all executors run, or have ended well.
    pub(super) fn is_ready(&self, object: &Value) -> bool {
        let status = &object["status"];
        let executors_up = status[EXECUTOR_STATE].as_object().into_iter().flatten();
        let executors_up =
            executors_up.filter(|(_, state)| *state == "RUNNING" || *state == "COMPLETED").count();
        let wanted = self.application.get(object).map_or(0, executors);
        status["applicationState"]["state"] == "RUNNING"
            && usize::try_from(wanted).is_ok_and(|wanted| executors_up >= wanted)
    }

    /// Errors of an application in a queue. `elastic`: it asks for elasticity.
    pub(super) fn check(&self, object: &Value, elastic: bool) -> Errors {
        let mut errors = Errors::new();
        let application = self.application.get(object).unwrap_or(&Value::Null);
        let path = self.application.field_path();
        // In another mode the driver is no pod of the operator.
        if application["mode"] != "cluster" {
            let mode = application["mode"].as_str().unwrap_or_default();
            let detail = "only Cluster mode is supported for a kueue managed job";
            errors.push(FieldError::invalid(format!("{path}.mode"), mode, detail));
        }
        // Executors that come and go would change the quota without the Workload.
        if application["dynamicAllocation"]["enabled"] == true && !elastic {
            let detail = "a kueue managed job can use dynamicAllocation only when the ElasticJobsViaWorkloadSlices \
                          feature gate is on and the job is an elastic job";
            let field = format!("{path}.dynamicAllocation.enabled");
            errors.push(FieldError::invalid(field, true, detail));
        }
        errors
    }
}

/// The number of executors.
fn executors(application: &Value) -> i32 {
    let instances = application["executor"]["instances"].as_i64().unwrap_or(0);
    i32::try_from(instances.max(0)).unwrap_or(i32::MAX)
}
