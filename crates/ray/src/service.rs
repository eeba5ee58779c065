//! RayService: Serve applications in a cluster that is replaced without interruption.
//!
//! | module | concept |
//! |---|---|
//! | `decide` | the order of the steps |
//! | `context`, `state` | what all steps read; the status while a pass changes it |
//! | `memory` | what is kept between passes, and may be lost |
//! | `clusters`, `goal` | which clusters are made, changed and removed; whether a cluster is of the present spec |
//! | `go_form` | when two specs are equal for an operator in Go |
//! | `serve_label`, `applications`, `serve_config` | what heads serve, and what they are asked and sent |
//! | `services`, `named_objects`, `gateway` | how traffic reaches a cluster; which Services count by their names alone |
//! | `incremental` | how traffic and capacity move from one cluster to another |
//! | `promotion`, `conditions` | which cluster is active, and the conditions |
//! | `suspension` | removal of everything, and the return |
//! | `validate` | what the controller refuses |
//!
//! Source: docs/reference/ray.md §5, §9.

mod applications;
mod clusters;
mod conditions;
mod context;
mod decide;
mod gateway;
mod go_form;
mod goal;
mod incremental;
mod memory;
mod named_objects;
mod promotion;
mod serve_config;
mod serve_label;
mod services;
mod state;
mod suspension;
mod validate;

pub use decide::decide;
pub use memory::ServiceMemory;
pub use named_objects::{named_objects, reads};
pub(crate) use validate::check_timeout;
pub use validate::{InvalidService, check_service};
