//! Kinds of jobs that are declared as data: where a kind has its switch, pod templates, counts and conditions.
//!
//! ```text
//! JobFields (pointers, tables) + object ──> DeclaredJob : GenericJob
//! ```
//! | file | concept |
//! |---|---|
//! | `fields` | [`JobFields`], [`MarkedPods`]: what a kind declares, and which declarations are refused |
//! | `pod_sets`, `declared_pod_set` | pod sets, their templates and counts |
//! | `count`, `probe` | numbers and answers that are read from an object |
//! | `lookups` | pod sets with templates in other objects |
//! | `kind_reference` | [`KindReference`]: kinds that the operator knows of an object which jobs name |
//! | `components` | pod sets of wrapped objects |
//! | `training` | [`TrainingSpec`]: a job whose operator renders a runtime |
//! | `spark` | [`SparkSpec`]: a driver and executors, whose pods stand in fields |
//! | `ray` | [`RaySpec`]: a RayCluster in a job: what its operator adds to the pods, and what is refused |
//! | `live_cluster` | the size of a RayCluster that its autoscaler changes |
//! | `defaults` | fields that the webhook sets |
//! | `elastic` | scheduling gates of elastic jobs |
//! | `marked_pods` | webhooks of kinds with pods that are jobs themselves, or one group |
//! | `grouped_pods` | a kind whose pods are one group ([`GroupedPods`]): the Workload, the members and the changes of such a group |
//! | `declared_job`, `declared_object` | [`DeclaredJob`]: a job of such a kind; the object as its parts read it |
//! | `assigned_hosts` | the nodes that a start binds pods to |
//! | `start_and_stop` | start, restore and stop |
//! | `remote` | the copy for a worker, and its status |
//! | `resized_groups` | groups of pods that copies on workers resize |

mod assigned_hosts;
mod components;
mod count;
mod declared_job;
mod declared_object;
mod declared_pod_set;
mod defaults;
mod elastic;
mod fields;
mod grouped_pods;
mod kind_reference;
mod live_cluster;
mod lookups;
mod marked_pods;
mod pod_sets;
pub(crate) mod probe;
mod ray;
mod remote;
mod resized_groups;
mod spark;
mod start_and_stop;
#[cfg(test)]
mod tests;
mod training;

pub use self::{
    count::{Bounded, Count},
    declared_job::DeclaredJob,
    declared_pod_set::IndexLabels,
    defaults::DefaultField,
    fields::{
        FieldsError, GroupedPods, JobFields, MarkedPods, Outcome, PlacedBy, Reclaimable,
        RemoteFields,
    },
    kind_reference::KindReference,
    pod_sets::{PodSetName, PodSetRule, TemplateSource},
    probe::Probe,
    ray::RaySpec,
    spark::SparkSpec,
    training::{StartAdditions, StartObstacle, TrainingSpec},
};

pub(crate) use self::{probe::NOTHING_RUNS, spark::EXECUTOR_STATE};
