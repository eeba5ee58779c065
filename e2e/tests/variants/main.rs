//! Variants on a control plane: Jobs that try several flavors at once. Their pods are made and bound by Kubernetes' own controllers.
//!
//! | module | scenarios |
//! |---|---|
//! | `migration` | a Job takes the worse flavor, and moves to the better one |
//! | `competing` | the first admission is kept; a variant preempts; a Job changes while it waits |

mod competing;
mod fixture;
mod migration;
