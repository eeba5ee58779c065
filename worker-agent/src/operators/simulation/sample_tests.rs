//! The samples of Ray's objects: what the operators make of each, and how far it comes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};

use super::{run::SimulatedRun, world::SharedWorld};

/// A sample, its state, its pods then, and the kinds of all objects that were made for it.
const LIVES: [(&str, &str, usize, &str); 20] = [
    ("cluster-autoscaling", "ready", 2, "Pod Role RoleBinding Service ServiceAccount"),
    ("cluster-exposed", "ready", 2, "Ingress Pod Service"),
    ("cluster-multi-host", "ready", 5, "Pod Service"),
    ("cluster-redis", "ready", 2, "Pod Service"),
    ("cluster-token", "ready", 2, "Pod Secret Service"),
    ("cluster", "ready", 3, "Pod Service"),
    ("cron-job", "made 1", 0, "Pod RayCluster RayJob Service"),
    ("job-deletion-rules", "Complete", 0, "Pod RayCluster Service"),
    ("job-http", "Complete", 0, "Pod RayCluster Service"),
    ("job-interactive", "Waiting", 2, "Pod RayCluster Service"),
    ("job-retries", "Complete", 0, "Pod RayCluster Service"),
    ("job-selector", "Initializing", 0, ""),
    ("job-sidecar", "Complete", 0, "Pod RayCluster Service"),
    ("job-submitter", "Complete", 0, "Job Pod RayCluster Service"),
    (
        "service-incremental",
        "Running",
        2,
        "Gateway HTTPRoute Pod RayCluster Role RoleBinding Service ServiceAccount",
    ),
    ("service-workers", "Running", 2, "Pod RayCluster Service"),
    ("service", "Running", 2, "Pod RayCluster Service"),
    ("wrapped-cluster", "Running", 2, "Pod RayCluster Service"),
    ("wrapped-job", "Succeeded", 0, "Pod RayCluster RayJob Service"),
    ("wrapped-pods", "Running", 2, "Pod Service"),
];

/// Until the RayJob of the first night has ended.
const UNTIL_THE_NIGHT: u64 = 5_460;

/// Longer than a RayJob takes, and than the grace that an AppWrapper gives to pods that are missing.
const LONG_ENOUGH: u64 = 400;

/// All samples by the names of their files.
fn samples() -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/samples/ray");
    let files = fs::read_dir(folder).expect("the samples").flatten().map(|file| file.path());
    let files = files.filter(|path| !path.ends_with("kustomization.yaml"));
    let samples = files.map(|path| {
        let text = fs::read_to_string(&path).expect("the sample is there");
        let mut object: Value = serde_saphyr::from_str(&text).expect("YAML");
        object["metadata"]["namespace"] = json!("ns");
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), object)
    });
    samples.collect()
}

/// The state, the number of pods, and the kinds that were made.
async fn life(object: Value) -> (String, usize, String) {
    let is_scheduled = object["kind"] == "RayCronJob";
    let mut run = SimulatedRun::start(SharedWorld::new(object, None));
    run.run_for(if is_scheduled { UNTIL_THE_NIGHT } else { LONG_ENOUGH }).await;
    let world = run.world.lock();
    assert!(world.api.violations.is_empty(), "{:?}", world.api.violations);
    assert!(world.heads.ledger.len() < 2, "it ran again: {:?}", world.heads.ledger);
    let parent = world.parent();
    let status = |field: &str| parent["status"][field].as_str().unwrap_or_default().to_owned();
    let state = match parent["kind"].as_str().unwrap_or_default() {
        "RayCluster" => status("state"),
        "RayJob" => status("jobDeploymentStatus"),
        "RayService" => status("serviceStatus"),
        "AppWrapper" => status("phase"),
        _ => format!("made {}", world.heads.ledger.len()),
    };
    let others = world.api.log.iter().filter(|(id, _)| *id != world.parent);
    let made: BTreeSet<&str> = others.map(|(id, _)| id.kind.as_str()).collect();
    let made: Vec<&str> = made.into_iter().filter(|kind| *kind != "Event").collect();
    (state, world.api.of_kind("Pod").count(), made.join(" "))
}

#[tokio::test(start_paused = true)]
async fn each_sample_of_ray_comes_to_its_state() {
    let mut samples = samples();
    for (name, state, pods, made) in LIVES {
        let sample = samples.remove(name).expect("the sample is there");
        assert_eq!(life(sample).await, (state.to_owned(), pods, made.to_owned()), "{name}");
    }
    assert!(samples.is_empty(), "a sample without a life: {:?}", samples.keys());
}
