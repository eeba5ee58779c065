//! Elastic Jobs on a control plane: their workload slices, and their pods, which Kubernetes' own controllers make and bind.
//!
//! | module | scenarios |
//! |---|---|
//! | `resize` | a Job grows and shrinks while it runs |
//! | `interrupted` | the manager starts again, and the queue stops, while a slice waits |

mod fixture;
mod interrupted;
mod resize;
