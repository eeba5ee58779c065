//! Plays one life of an object, with at most one fault.

use ray::names::{NODE_TYPE_LABEL, OPERATOR_VERSION, RECREATE_HASH};
use serde_json::json;

use super::{
    faults::{Disturbance, FaultPoint},
    run::SimulatedRun,
    scenario::{LifePart, OperatedObject},
    specs::NEXT_IMAGE,
    world::OperatorWorld,
};
use crate::operators::object_cache::ObjectId;

/// The most writes of a life.
const MOST_WRITES: usize = 180;

/// What a life came to.
pub(super) struct LifeEnd {
    /// The number of writes before each part, and at the end.
    pub(super) writes: Vec<usize>,
    /// What is wrong.
    pub(super) faults: Vec<String>,
}

/// Plays a life to its end.
pub(super) async fn play(
    object: OperatedObject,
    life: &[LifePart],
    plan: Option<FaultPoint>,
) -> LifeEnd {
    let mut run = SimulatedRun::start(object.world(plan));
    let mut end = LifeEnd { writes: Vec::new(), faults: Vec::new() };
    for part in life {
        end.writes.push(run.world.lock().lines.len());
        let is_rest = play_part(*part, &mut run).await;
        if is_rest {
            let found = object.faults_at_rest(&run.world.lock());
            end.faults.extend(found.into_iter().map(|fault| format!("{part:?}: {fault}")));
        }
    }
    let world = run.world.lock();
    end.writes.push(world.lines.len());
    if plan.is_some() && world.tripped.is_none() {
        end.faults.push("the fault did not happen".to_owned());
    }
    if world.lines.len() > MOST_WRITES {
        end.faults.push(format!("{} writes", world.lines.len()));
    }
    if !end.faults.is_empty() {
        end.faults.push(format!("{:#?}", world.lines));
        end.faults.push(format!("{:?}", world.api.events));
    }
    end
}

/// Plays a part. Returns whether nothing moves after it.
async fn play_part(part: LifePart, run: &mut SimulatedRun) -> bool {
    match part {
        LifePart::Begin => {}
        LifePart::BeginWork => {
            run.until_at_work().await;
            return false;
        }
        LifePart::Wait(seconds) => {
            run.run_for(seconds).await;
            return false;
        }
        LifePart::Upgrade => upgrade(&mut run.world.lock()),
        LifePart::TakeOver => take_over(&mut run.world.lock()),
        LifePart::NameJob => name_job(&mut run.world.lock()),
        LifePart::Resume if run.world.lock().parent()["spec"]["suspend"] != true => return false,
        LifePart::Resume => run.suspend_any(false),
        LifePart::ResumeWork => {
            run.suspend_any(false);
            run.until_at_work().await;
            return false;
        }
        LifePart::Suspend => run.world.lock().disturb(Disturbance::Suspend),
        LifePart::KillHeads => run.world.lock().disturb(Disturbance::HeadDies),
        LifePart::Delete => run.world.lock().disturb(Disturbance::Delete),
    }
    run.until_quiet().await;
    true
}

/// Changes the images of the object.
fn upgrade(world: &mut OperatorWorld) {
    let parent = world.parent.clone();
    world.api.change(&parent, |object| {
        for config in ["/spec", "/spec/rayClusterConfig"] {
            for group in ["headGroupSpec", "workerGroupSpecs/0"] {
                let image = format!("{config}/{group}/template/spec/containers/0/image");
                if let Some(image) = object.pointer_mut(&image) {
                    *image = json!(NEXT_IMAGE);
                }
            }
        }
    });
}

/// Gives heads the version and the hash of an official operator.
fn take_over(world: &mut OperatorWorld) {
    let heads: Vec<ObjectId> = world
        .api
        .of_kind("Pod")
        .filter(|pod| pod["metadata"]["labels"][NODE_TYPE_LABEL] == "head")
        .map(ObjectId::of)
        .collect();
    for head in heads {
        world.api.change(&head, |head| {
            let annotations = &mut head["metadata"]["annotations"];
            annotations[OPERATOR_VERSION] = json!("v1.7.0");
            annotations[RECREATE_HASH] = json!("HASHOFANOTHER");
        });
    }
}

/// The user names the job, and submits it whenever the head does not know it.
fn name_job(world: &mut OperatorWorld) {
    let parent = world.parent.clone();
    world.api.change(&parent, |object| object["spec"]["jobId"] = json!("named"));
}
