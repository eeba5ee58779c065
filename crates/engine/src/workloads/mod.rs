//! Workloads: their records, what they request, and what is kept beside the records.

pub(crate) mod admission;
pub(crate) mod record;
pub(crate) mod second_passes;
pub(crate) mod slice_replacements;
pub(crate) mod table;
pub(crate) mod usage;
pub(crate) mod variant_groups;
