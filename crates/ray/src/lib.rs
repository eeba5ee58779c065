//! The kinds of `ray.io`, and the decisions of their operator; pure.
//!
//! | module | concept |
//! |---|---|
//! | [`v1`], `v1alpha1` | the stored version, and the one served for old clients |
//! | [`cluster`] | what a RayCluster needs next |
//! | [`cron_job`], [`cron_schedule`], [`cron_zone`] | what a RayCronJob needs next; schedules of cron; time zones |
//! | [`job`] | what a RayJob needs next |
//! | [`head`] | requests to a Ray head, and what its answers mean |
//! | [`service`] | what is refused of a RayService |
//! | `service_spec` | the change of a Service that is to lead to another cluster |
//! | [`security`] | NetworkPolicies, encryption and ways to dashboards, as CodeFlare adds them |
//! | [`step`], `pass` | what a decision asks for, and the answers |
//! | [`webhook`] | what is refused at admission |
//! | [`settings`], [`names`] | what an administrator may set; labels, annotations, conditions |
//! | `operator_variables`, `operator_file` | settings as environment and file of the official operator have them |
//! | [`feature_gates`] | gates by their names |
//! | [`definitions`] | the CustomResourceDefinitions, generated from the types |
//! | [`shapes`] | schemas of fields that hold a part of a pod |
//! | `rules` | cross-field rules of the CRDs, in CEL |
//! | `user_yaml` | texts of YAML in objects of users |
//! | `conditions_of`, `finalizers`, `json` | conditions of a status; finalizers; reads and writes of untyped objects |

pub mod cluster;
mod conditions_of;
pub mod cron_job;
pub mod cron_schedule;
pub mod cron_zone;
pub mod definitions;
pub mod feature_gates;
mod finalizers;
pub mod head;
pub mod job;
mod json;
pub mod names;
mod operator_file;
mod operator_variables;
mod pass;
mod rules;
pub mod security;
pub mod service;
mod service_spec;
pub mod settings;
pub mod shapes;
pub mod step;
mod user_yaml;
pub mod v1;
mod v1alpha1;
pub mod webhook;

pub use cluster::PassInputs;
pub use operator_file::RayFileError;
pub use operator_variables::RayVariableError;
