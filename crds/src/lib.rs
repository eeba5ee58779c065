//! The API kinds of Kueue and Sluice.
//!
//! | module | concept |
//! |---|---|
//! | [`v1beta2`], [`v1beta1`] | Kueue's kinds: the stored version, and the one served for old clients |
//! | [`v1alpha1`] | Sluice's kinds: ClusterCapacity and DispatchPolicy |
//! | [`conversion`] | conversion between v1beta1 and v1beta2 |
//! | [`decode`], [`exact`] | decoders of objects, compiled once; lists without spare room |
//! | [`crd`] | the CustomResourceDefinitions, generated from the types |
//! | [`names`] | labels, annotations, finalizers, conditions and reasons |
//! | [`kind`], [`meta`], [`pod`], [`quantity`] | API kinds, shared Kubernetes types, pod templates, quantities |
//! | [`json`], [`plural`] | parts of objects without a type; names of resources that are guessed from kinds |
//! | [`validation`], [`schema_check`] | errors of fields, and the JSON types of an object |
//! | [`template_defaults`] | equality of pod templates that may lack defaults of the schema |
//! | [`schema`] | schemas that fields of several kinds share |
//! | [`go_duration`], [`go_parse`] | durations as Go reads and writes them; numbers and booleans as Go reads them |
//! | [`yaml`] | files of YAML |
//! | `label_map` | labels of templates, in little memory |
//! | `shared_by_text`, `shared_fields`, `shared_maps`, `shared_parts`, `shared_pod_spec` | equal parts of objects that memory holds once |
//! | `stored_time` | times as an API server stores them |
//! | [`worker_drain`] | the drain that annotations of a MultiKueueCluster ask for |
//!
//! Invariant: types are total. Every object that an API server may hold decodes; limits belong to the schema, cross-field
//! rules to CEL or the webhooks.

pub mod conversion;
pub mod crd;
pub mod decode;
pub mod exact;
pub mod go_duration;
pub mod go_parse;
pub mod json;
pub mod kind;
mod label_map;
pub mod meta;
pub mod names;
pub mod plural;
pub mod pod;
pub mod quantity;
mod rules;
pub mod schema;
pub mod schema_check;
mod shared;
mod shared_by_text;
mod shared_fields;
mod shared_maps;
mod shared_parts;
mod shared_pod_spec;
mod stored_time;
pub mod template_defaults;
pub mod v1alpha1;
pub mod v1beta1;
pub mod v1beta2;
pub mod validation;
pub mod worker_drain;
pub mod yaml;
