//! The life cycle of a job, for every form in which a kind may be defined: Job by code, JobSet by a built-in file, and two kinds
//! that only this suite knows, one of them with pod templates in another object. The operators of all but Job are played by the
//! harness.
//!
//! | module | scenarios |
//! |---|---|
//! | `cluster_cases` | what is tested on any manager with two workers |
//! | `crd_deleted` | the CRD of a kind is deleted while its jobs run |
//! | `deployments` | pods of a Deployment, queued one by one |
//! | `dispatched_pods` | a pod and a group of pods that run on a worker |
//! | `one_cluster` | jobs on the manager's own cluster |
//! | `workers` | jobs that are dispatched to workers |
//! | `leader_worker_set` | a set of replicas with a Workload each |
//! | `lookups` | a job waits for the object with its pod templates |
//! | `pods` | single pods and groups of pods |
//! | `recorded_lives` | what was recorded of upstream, with some cases of each kind |
//! | `rights` | the generated roles suffice for declared kinds |
//! | `stateful_sets` | a set with one Workload for all its pods |
//! | `served_later` | a kind that a cluster does not serve at first |

mod cluster_cases;
mod crd_deleted;
mod deployments;
mod dispatched_pods;
mod expect;
mod fixture;
mod kind_under_test;
mod leader_worker_set;
mod lookups;
mod one_cluster;
mod pods;
mod recorded_lives;
mod rights;
mod served_later;
mod shared_installation;
mod stateful_sets;
mod workers;

use anyhow::Result;

use crate::kind_under_test::{KindUnderTest, TRAINING};

/// A test per scenario, for a kind.
macro_rules! life_cycle {
    ($kind:ident, $tested:expr, [$($room:ident: $($scenario:ident)*),*]) => {
        mod $kind {
            use super::*;

            $($(
                #[tokio::test]
                async fn $scenario() -> Result<()> {
                    $room::$scenario($tested?).await
                }
            )*)*
        }
    };
}

macro_rules! life_cycles {
    ($($kind:ident: $tested:expr;)*) => {
        $(life_cycle!($kind, $tested, [
            one_cluster:
                a_job_waits_runs_and_succeeds
                a_job_fails
                a_job_is_evicted_and_runs_again
                a_job_is_deleted_while_it_runs
                a_job_without_a_queue_name_is_left_alone
                a_child_gets_no_workload,
            workers:
                a_job_runs_on_a_worker_and_leaves_no_objects
                a_job_is_evicted_from_a_worker_and_runs_again
                a_job_is_deleted_while_it_runs_on_a_worker
        ]);)*
    };
}

life_cycles! {
    job: KindUnderTest::job();
    job_set: KindUnderTest::job_set();
    training: KindUnderTest::training(TRAINING);
    course: KindUnderTest::course();
}

// The recordings show the rest of its life.
life_cycle!(jax_job, KindUnderTest::jax_job(), [
    one_cluster: a_job_waits_runs_and_succeeds,
    workers:
        a_job_runs_on_a_worker_and_leaves_no_objects
        a_job_is_evicted_from_a_worker_and_runs_again
]);
