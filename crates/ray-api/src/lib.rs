//! The HTTP API of Ray clusters (docs/reference/ray.md §13), without the server: what a request means, what is authorized about it,
//! and what is sent on.
//!
//! The routes are those of KubeRay's API server (V2): a proxy in front of the API server of the manager cluster, and of the Services of
//! Ray heads. A server authenticates the caller, has the request authorized, and sends the request to the cluster
//! where its object stands ([`ServiceOwner`]).
//!
//! | module | concept |
//! |---|---|
//! | `request`, `service_reference` | what method and path mean |
//! | `reviews` | which access of the caller is reviewed |
//! | `events` | the field selector of events |
//! | `service_owner` | the Ray object that a Service belongs to |
//! | [`compute_template`], `object_body` | resources of a group by the name of a template |
//! | [`headers`](mod@headers) | headers that are passed on |
//! | `upgrade` | upgrades to WebSockets |
//! | [`retry`] | which answers are asked for again |
//! | `refusal` | answers of the API itself |

pub mod compute_template;
mod events;
pub mod headers;
mod object_body;
mod refusal;
mod request;
pub mod retry;
mod reviews;
mod service_owner;
mod service_reference;
mod upgrade;

pub use events::with_ray_events;
pub use object_body::ObjectBody;
pub use refusal::RayApiRefusal;
pub use request::{RayApiRequest, ServiceCall, without_last_slash};
pub use reviews::template_review;
pub use service_owner::{RayOwnerKind, ServiceOwner, owner_candidates, owns_service};
pub use service_reference::ServiceReference;
pub use upgrade::{asks_for_upgrade, is_upgraded};
