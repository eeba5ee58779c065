//! Users of an API that the manager serves, and what is authorized about their requests.
//!
//! A server identifies the [`RequestUser`] of a request, and has the [`ReviewedRequest`] authorized, by reviews of the API server
//! (`manager::access`). A refusal is a [`status`](mod@status) object of Kubernetes.
//!
//! | module | concept |
//! |---|---|
//! | `request_user` | the user of a request |
//! | `reviewed_request` | verb and resource, or path, of a request |
//! | [`status`](mod@status) | refusals as Kubernetes writes them |

mod request_user;
mod reviewed_request;
pub mod status;

pub use request_user::RequestUser;
pub use reviewed_request::{ReviewedRequest, ReviewedResource, ReviewedTarget, asks_for_watch};
