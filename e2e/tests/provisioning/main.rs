//! Admission checks on a control plane. The tests play the autoscaler, and the controller of another check (docs/reference/kueue.md §2.3).
//!
//! | module | scenarios |
//! |---|---|
//! | `answers` | what a request's conditions do to its Workload |
//! | `requests` | what is requested, and what is not |
//! | `room` | pods go where the room is |
//! | `obstacles` | configs, kinds and names that are missing or taken, and a new manager |
//! | `third_party` | states and updates of a check of another controller |

mod answers;
mod fixture;
mod obstacles;
mod requests;
mod room;
mod third_party;
