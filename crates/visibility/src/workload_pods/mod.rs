//! The API `visibility.sluice.dev` (docs/reference/dispatch.md §12), without the server: the pods of a Workload on the cluster that runs
//! it, and their logs.
//!
//! A server reads the Workload, its copy and pods; each module says what one of them means. Workers are not trusted: what they say about
//! a pod counts only with the owners of the pod, and their texts are cut.
//!
//! | module | concept |
//! |---|---|
//! | [`WorkloadCall`], [`LogQuery`] | what a request asks for |
//! | `reviews` | the rights on the manager cluster that it needs |
//! | [`location_of`], [`check_copy`] | the cluster that runs a Workload, and the copy there |
//! | [`WorkloadOwners`] | which pods belong to the Workload |
//! | [`WorkloadPodList`] | the list of pods |
//! | [`PodsRefusal`] | why there is no answer |
//! | `call`, `log_query` | requests by their path, and the query of a log |
//! | `location`, `observed` | where a Workload runs; what is read of pods and owners |
//! | `refusal` | the errors |

mod call;
mod list;
mod location;
mod log_query;
mod observed;
mod owners;
mod refusal;
mod reviews;

pub use self::{
    call::{WorkloadCall, WorkloadPart},
    list::{WorkloadPod, WorkloadPodList},
    location::{WorkloadLocation, check_copy, location_of},
    log_query::LogQuery,
    observed::{ObservedObject, ObservedPod, ObservedPodPage},
    owners::{PodBelonging, WorkloadOwners, owner_path},
    refusal::PodsRefusal,
};
