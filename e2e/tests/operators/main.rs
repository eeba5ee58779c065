//! Ray and AppWrapper on a worker without official operators: the agent operates them.
//!
//! Users submit to the manager cluster. The lab's nodes play pods, and one server plays all Ray heads.
//!
//! | module | scenarios |
//! |---|---|
//! | `ray_clusters` | a RayCluster that runs, changes its size, and goes |
//! | `ray_jobs` | a RayJob until its end, over heads that fail and agents that are killed |
//! | `ray_services` | a RayService that serves, is changed, and is upgraded |
//! | `admission` | what the policies refuse |
//! | `ray_api` | callers that reach Ray heads of the worker through the manager cluster |
//! | `app_wrappers` | AppWrappers with a RayCluster or a RayJob in them |
//! | `moved` | an AppWrapper that is evicted from one worker and runs on the other |
//! | `ray_security` | what secures RayClusters, on a plain Kubernetes and on OpenShift |
//! | `ray_oauth` | a RayCluster with OAuth, dispatched to an OpenShift |
//! | `samples` | the samples at real API servers |
//! | `fixture` | the installation, and what all scenarios do |

mod admission;
mod app_wrappers;
mod fixture;
mod moved;
mod ray_api;
mod ray_clusters;
mod ray_jobs;
mod ray_oauth;
mod ray_security;
mod ray_services;
mod samples;
