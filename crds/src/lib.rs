//! Kueue's and Sluice's API kinds.

pub mod conversion;
pub mod crd;
pub mod kind;
pub mod meta;
pub mod names;
pub mod pod;
pub mod quantity;
mod rules;
mod schema;
pub mod shape;
pub mod v1alpha1;
pub mod v1beta1;
pub mod v1beta2;
pub mod validation;
