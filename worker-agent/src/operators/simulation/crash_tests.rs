//! Every write of the operators × everything that goes wrong there × everything that may happen beside it.

use super::{
    faults::{Disturbance, FaultPoint, WriteFault},
    run::SimulatedRun,
    scenario::OperatedObject,
    world::SharedWorld,
};

/// The most writes from one rest to the next.
const MOST_WRITES: usize = 60;

/// Runs one fault to its end. The number of writes until the first rest, and what is wrong, are the answer.
async fn play(object: OperatedObject, plan: Option<FaultPoint>) -> (usize, Vec<String>) {
    let world = SharedWorld::new(object.object(), plan);
    let mut run = SimulatedRun::start(world);
    run.until_quiet().await;
    if object.upgrade(&mut run.world.lock()) {
        run.until_quiet().await;
    }
    let mut last = plan.map_or(Disturbance::Nothing, |plan| plan.disturbance);
    let n_writes = run.world.lock().lines.len();
    let mut found = object.faults_at_rest(&run.world.lock(), last);
    if plan.is_some() && run.world.lock().tripped.is_none() {
        found.push("the fault did not happen".to_owned());
    }
    if last == Disturbance::Suspend {
        last = Disturbance::Nothing;
        run.resume();
        run.until_quiet().await;
        found.extend(object.faults_at_rest(&run.world.lock(), last));
    }
    if last != Disturbance::Delete {
        run.world.lock().disturb(Disturbance::Delete);
        run.until_quiet().await;
        found.extend(object.faults_at_rest(&run.world.lock(), Disturbance::Delete));
    }
    let n_all = run.world.lock().lines.len();
    if n_all > 3 * MOST_WRITES {
        found.push(format!("{n_all} writes"));
    }
    if !found.is_empty() {
        found.push(format!("{:#?}", run.world.lock().lines));
    }
    (n_writes, found)
}

/// Plays every fault at every write of an object's life.
async fn play_all(object: OperatedObject) {
    let (n_writes, found) = play(object, None).await;
    assert!(found.is_empty(), "without a fault: {found:#?}");
    let mut wrong = Vec::new();
    let mut n_runs = 0;
    for write in 0..n_writes {
        for fault in WriteFault::ALL {
            for disturbance in Disturbance::ALL {
                let plan = FaultPoint { write, fault, disturbance };
                if std::env::var("SHOW").is_ok() {
                    eprintln!("{plan:?}");
                }
                let (_, found) = play(object, Some(plan)).await;
                n_runs += 1;
                if !found.is_empty() {
                    wrong.push(format!("{plan:?}: {found:#?}"));
                }
            }
        }
    }
    eprintln!("{object:?}: {n_writes} writes, {n_runs} runs");
    assert!(wrong.is_empty(), "{} of {n_runs} runs: {}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_survives_every_fault_at_every_write() {
    play_all(OperatedObject::Cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_everything_survives_every_fault_at_every_write() {
    play_all(OperatedObject::FullCluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_several_hosts_survives_every_fault_at_every_write() {
    play_all(OperatedObject::HostsCluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_redis_survives_every_fault_at_every_write() {
    play_all(OperatedObject::StoredCluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_ray_job_by_http_survives_every_fault_at_every_write() {
    play_all(OperatedObject::HttpJob).await;
}

#[tokio::test(start_paused = true)]
async fn a_ray_job_with_a_submitter_survives_every_fault_at_every_write() {
    play_all(OperatedObject::SubmittedJob).await;
}

#[tokio::test(start_paused = true)]
async fn a_ray_job_with_a_sidecar_survives_every_fault_at_every_write() {
    play_all(OperatedObject::SidecarJob).await;
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_cluster_survives_every_fault_at_every_write() {
    play_all(OperatedObject::UpgradedCluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_ray_service_survives_every_fault_at_every_write() {
    play_all(OperatedObject::Service).await;
}

#[tokio::test(start_paused = true)]
async fn an_app_wrapper_survives_every_fault_at_every_write() {
    play_all(OperatedObject::Wrapper).await;
}
