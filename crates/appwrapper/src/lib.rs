//! AppWrappers, and the decisions of their operator; pure.
//!
//! | module | concept |
//! |---|---|
//! | [`v1beta2`] | the API |
//! | [`definitions`] | the CustomResourceDefinition, generated from the types |
//! | [`decide`](fn@decide) | what an AppWrapper needs next: the phases |
//! | [`step`] | what a decision asks for, and the answers |
//! | [`pod_sets`], [`template_path`], `pod_spec_fault` | the pods of a component |
//! | [`declared_pod_sets`] | pod sets that contradict the object of their component |
//! | [`AllowedComponents`] (`allowed_components`) | the kinds of objects that components may have |
//! | `component`, `creation`, `deletion`, `health` | objects of components: made, removed, judged |
//! | `autoscaled` | worker groups that Ray's autoscaler sizes |
//! | [`evicted_nodes`](fn@evicted_nodes) | nodes that pods must leave |
//! | [`webhook`] | what is refused and defaulted at admission |
//! | `operator_file` | the same settings as the official operator's file has them |
//! | [`settings`], [`names`] | what an administrator may set; labels, annotations, conditions |
//! | `state`, `phase` | an AppWrapper while a decision is made, and its phase |

mod allowed_components;
mod autoscaled;
mod component;
mod creation;
mod decide;
pub mod declared_pod_sets;
pub mod definitions;
mod deletion;
mod evicted_nodes;
mod health;
pub mod names;
mod operator_file;
mod phase;
pub mod pod_sets;
mod pod_spec_fault;
pub mod settings;
mod state;
pub mod step;
pub mod template_path;
pub mod v1beta2;
pub mod webhook;

use crds::json;

pub use allowed_components::AllowedComponents;
pub use component::component_name;
pub use decide::decide;
pub use evicted_nodes::evicted_nodes;
pub use operator_file::WrapperFileError;
pub use pod_spec_fault::pod_spec_type_fault;
pub use state::WrapperFacts;
