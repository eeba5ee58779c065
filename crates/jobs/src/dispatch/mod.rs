//! Jobs and Workloads on worker clusters (docs/reference/dispatch.md §5, §6).
//!
//! | question | module |
//! |---|---|
//! | What is created on a worker? | [`remote_objects`] |
//! | What does a clone carry to a worker without flavors? | [`clone_assignment`] |
//! | How are sets of pods copied? | [`set_copies`] |
//! | What of the status of a copy is copied? | [`bounded_status`] |
//! | What becomes of a copy when its original is lost? | [`rebuilt`] |
//! | Which kinds are only copied to workers? | [`mirrored`] |

pub mod bounded_status;
pub mod clone_assignment;
pub mod mirrored;
pub mod rebuilt;
pub mod remote_objects;
pub mod set_copies;
