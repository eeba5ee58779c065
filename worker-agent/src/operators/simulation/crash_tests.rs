//! Every write of the operators × everything that goes wrong there × everything that may happen beside it.
//!
//! All of them together take half an hour. A run of the tests takes one pair of a fault and a disturbance at each write, in a fixed
//! rotation. `make operator-matrix` takes all.

use super::{
    faults::{Disturbance, FaultPoint, WriteFault},
    life::play,
    scenario::{LifePart, OperatedObject},
};

/// What goes wrong at a write. The numbers of faults and disturbances have no common divisor, so each pair has its turn.
fn plans(object: OperatedObject, write: usize) -> Vec<FaultPoint> {
    let (faults, disturbances) = (WriteFault::ALL, Disturbance::ALL);
    if std::env::var("OPERATOR_MATRIX").is_ok_and(|which| which == "all") {
        let pairs = disturbances.into_iter().flat_map(|it| faults.map(|fault| (fault, it)));
        let plans = pairs.map(|(fault, disturbance)| FaultPoint { write, fault, disturbance });
        return plans.collect();
    }
    // Objects share their first writes, so each begins elsewhere.
    let turn = write + 3 * object as usize;
    let fault = faults[turn % faults.len()];
    let disturbance = disturbances[turn % disturbances.len()];
    vec![FaultPoint { write, fault, disturbance }]
}

/// Plays the faults at every write of an object's lives.
async fn play_all(object: OperatedObject) {
    let mut former: &[LifePart] = &[];
    let (mut n_runs, mut n_writes, mut wrong) = (0, 0, Vec::new());
    for life in object.lives() {
        let end = play(object, life, None).await;
        assert!(end.faults.is_empty(), "without a fault: {:#?}", end.faults);
        // Writes of parts that begin a former life have had their faults.
        let n_common = life.iter().zip(former).take_while(|(one, other)| one == other).count();
        let writes = end.writes[n_common]..end.writes[life.len()];
        n_writes += writes.len();
        for plan in writes.flat_map(|write| plans(object, write)) {
            if std::env::var("SHOW").is_ok() {
                eprintln!("{object:?} {plan:?}");
            }
            let end = play(object, life, Some(plan)).await;
            n_runs += 1;
            if !end.faults.is_empty() {
                wrong.push(format!("{life:?} {plan:?}: {:#?}", end.faults));
            }
        }
        former = life;
    }
    eprintln!("{object:?}: {n_writes} writes, {n_runs} runs");
    assert!(wrong.is_empty(), "{} of {n_runs} runs: {}", wrong.len(), wrong.join("\n"));
}

macro_rules! survive {
    ($($name:ident: $object:ident,)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            play_all(OperatedObject::$object).await;
        }
    )*};
}

survive! {
    a_cluster_survives_every_fault_at_every_write: Cluster,
    a_cluster_with_everything_survives_every_fault_at_every_write: FullCluster,
    a_cluster_with_several_hosts_survives_every_fault_at_every_write: HostsCluster,
    a_cluster_with_redis_survives_every_fault_at_every_write: StoredCluster,
    an_upgraded_cluster_survives_every_fault_at_every_write: UpgradedCluster,
    a_secured_cluster_survives_every_fault_at_every_write: SecuredCluster,
    a_ray_job_by_http_survives_every_fault_at_every_write: HttpJob,
    a_ray_job_with_a_submitter_survives_every_fault_at_every_write: SubmittedJob,
    a_ray_job_with_a_sidecar_survives_every_fault_at_every_write: SidecarJob,
    a_ray_job_with_another_attempt_survives_every_fault_at_every_write: RetriedJob,
    a_ray_job_of_its_user_survives_every_fault_at_every_write: InteractiveJob,
    a_ray_job_with_deletion_rules_survives_every_fault_at_every_write: RuledJob,
    a_ray_job_with_a_deadline_survives_every_fault_at_every_write: TimedJob,
    a_ray_cron_job_survives_every_fault_at_every_write: CronJob,
    a_ray_service_survives_every_fault_at_every_write: Service,
    an_upgraded_ray_service_survives_every_fault_at_every_write: UpgradedService,
    an_incremental_ray_service_survives_every_fault_at_every_write: IncrementalService,
    an_app_wrapper_survives_every_fault_at_every_write: Wrapper,
    an_app_wrapper_that_is_reset_survives_every_fault_at_every_write: ResetWrapper,
    an_app_wrapper_that_fails_survives_every_fault_at_every_write: FailedWrapper,
    an_app_wrapper_with_stuck_pods_survives_every_fault_at_every_write: StuckWrapper,
    an_app_wrapper_with_a_ray_job_survives_every_fault_at_every_write: WrappedJob,
}
