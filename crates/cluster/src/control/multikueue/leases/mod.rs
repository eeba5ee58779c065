//! Leases of workers under ExactlyOnce, and what they mean for a Workload.
//!
//! | file | concept |
//! |---|---|
//! | `grants`, `lease_state` | which worker gets grants and which is fenced; what dispatch decides by |
//! | `exactly_once` | the guarantee of one Workload |

pub(super) mod exactly_once;
pub(super) mod grants;
pub(super) mod lease_state;
