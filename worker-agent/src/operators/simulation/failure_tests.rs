//! An API server that does not answer reads, and times of a schedule over crashes.

use serde_json::{Value, json};

use super::{
    faults::{Disturbance, FaultPoint, WriteFault},
    life::play,
    run::SimulatedRun,
    scenario::{LifePart, OperatedObject},
    specs::{cluster_spec, ray},
    world::{ReadFault, SharedWorld},
};

const FAULTS: [ReadFault; 3] = [ReadFault::Lost, ReadFault::Hangs, ReadFault::NoPage];

fn phase(run: &SimulatedRun) -> Value {
    run.world.lock().parent()["status"]["phase"].clone()
}

/// The components of an AppWrapper are read and not watched: a read without an answer does not mean that they are missing.
#[tokio::test(start_paused = true)]
async fn an_app_wrapper_survives_reads_without_an_answer() {
    for fault in FAULTS {
        let mut run = SimulatedRun::start(SharedWorld::new(OperatedObject::Wrapper.object(), None));
        run.run_for(30).await;
        assert_eq!(phase(&run), "Running");
        run.world.lock().reads = fault;
        // The next look at its health.
        run.run_for(200).await;
        assert_eq!(phase(&run), "Running", "{fault:?}");
        run.world.lock().reads = ReadFault::None;
        run.run_for(120).await;
        assert_eq!(phase(&run), "Running", "{fault:?}");
    }
}

/// Suspended while reads fail, it is not Suspended before its components are known to be gone.
#[tokio::test(start_paused = true)]
async fn an_app_wrapper_is_not_suspended_before_its_components_are_gone() {
    let mut run = SimulatedRun::start(SharedWorld::new(OperatedObject::Wrapper.object(), None));
    run.run_for(30).await;
    run.world.lock().reads = ReadFault::Lost;
    run.world.lock().disturb(Disturbance::Suspend);
    run.run_for(100).await;
    assert_ne!(phase(&run), "Suspended");
    run.world.lock().reads = ReadFault::None;
    run.run_for(100).await;
    assert_eq!(phase(&run), "Suspended");
    assert_eq!(run.world.lock().api.of_kind("Pod").count(), 0);
}

/// Whether a kind is served is not known without an answer: an unknown kind would fail the AppWrapper for good.
#[tokio::test(start_paused = true)]
async fn an_app_wrapper_waits_for_the_answer_whether_its_kind_is_served() {
    let component = json!({"template": {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"},
        "spec": {"replicatedJobs": []},
    }});
    let wrapper = json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {"name": "w", "namespace": "ns"}, "spec": {"components": [component]},
    });
    for fault in FAULTS {
        let world = SharedWorld::new(wrapper.clone(), None);
        world.lock().reads = fault;
        let mut run = SimulatedRun::start(world);
        run.run_for(100).await;
        assert_ne!(phase(&run), "Failed", "{fault:?}");
        run.world.lock().reads = ReadFault::None;
        run.run_for(100).await;
        assert_eq!(phase(&run), "Failed", "it is not served");
    }
}

/// Each time of a schedule has one RayJob, which is submitted once, whatever becomes of the writes.
#[tokio::test(start_paused = true)]
async fn a_ray_cron_job_makes_each_of_its_ray_jobs_once() {
    let spec = json!({
        "schedule": "* * * * *",
        "jobTemplate": {
            "submissionMode": "HTTPMode", "entrypoint": "e", "shutdownAfterJobFinishes": true,
            "rayClusterSpec": cluster_spec(1),
        },
    });
    let cron_job = ray("RayCronJob", "cron", &spec);
    // The RayJob of the first minute, the time of its schedule, and what the RayJob begins with.
    for write in 0..6 {
        for fault in WriteFault::ALL {
            let plan = FaultPoint { write, fault, disturbance: Disturbance::Nothing };
            let mut run = SimulatedRun::start(SharedWorld::new(cron_job.clone(), Some(plan)));
            run.run_for(230).await;
            run.world.lock().disturb(Disturbance::Suspend);
            run.run_for(120).await;
            let world = run.world.lock();
            assert!(world.tripped.is_some(), "{plan:?}");
            assert!(world.api.violations.is_empty(), "{plan:?}: {:?}", world.api.violations);
            let jobs = world.api.of_kind("RayJob");
            let ended = jobs.filter(|job| job["status"]["jobDeploymentStatus"] == "Complete");
            assert_eq!(ended.count(), 3, "{plan:?}: {:#?}", world.lines);
            assert_eq!(world.heads.ledger.len(), 3, "{plan:?}: {:#?}", world.heads.ledger);
        }
    }
}

/// The Gateway that the agent made is accepted later, and gone after its deletion, although no watch says so.
#[tokio::test(start_paused = true)]
async fn an_incremental_upgrade_ends_and_so_does_a_suspension_after_it() {
    let life = [LifePart::Begin, LifePart::Upgrade, LifePart::Suspend];
    let end = play(OperatedObject::IncrementalService, &life, None).await;
    assert!(end.faults.is_empty(), "{:#?}", end.faults);
}

/// The Job of a suspended AppWrapper is created late, and its pods go only if they are forced to.
#[tokio::test(start_paused = true)]
async fn stuck_pods_of_a_late_component_are_forced_to_go() {
    let (fault, disturbance) = (WriteFault::CrashLate, Disturbance::Suspend);
    let plan = FaultPoint { write: 3, fault, disturbance };
    let end = play(OperatedObject::StuckWrapper, &[LifePart::Begin], Some(plan)).await;
    assert!(end.faults.is_empty(), "{:#?}", end.faults);
}
