//! Workloads: their records, what they request, and what is kept beside the records. [`layer`] owns the data.

pub(crate) mod admission;
pub(crate) mod capacity_waits;
pub(crate) mod equivalence_class;
pub(crate) mod layer;
pub(crate) mod record;
pub(crate) mod second_passes;
pub(crate) mod slice_replacements;
mod table;
pub(crate) mod usage;
mod variant_groups;
