//! Recorded lives of every kind, on one cluster and over two. `sluice-lab replay` runs all of them; these are enough to see each
//! part of a life of each kind: defaults, pod sets, start, domains, eviction, restored templates, end, reclaimed pods, copy, status,
//! deletion.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::Result;
use e2e::trace_replays;
use replay::{CutCase, RecordedCases};

/// The chosen cases, by the end of their names: an eviction with another flavor, an end, a life on a worker, and
/// the domains of a topology.
const OF_EVERY_KIND: [&str; 4] =
    ["/life/tainted-flavor", "/life/succeeds", "/succeeds", "/life/x-topology"];

/// Of kinds that lack one of these in the recordings here, and of elastic jobs; for parts of a life that none of these shows (table in
/// docs/kinds.md).
const OF_OTHERS: [&str; 22] = [
    "Deployment/life/drained",
    "Deployment/life/pods-fail",
    "Deployment/life/scaled",
    "Deployment/life/zero-then-up",
    "JAXJob/life/deactivated",
    "Job/life/deactivated",
    "Job/life/elastic-no-room",
    "LeaderWorkerSet/life/deactivated",
    "LeaderWorkerSet/life/pending",
    "MultiKueue/RayCluster/fails",
    "MultiKueue/RayService/deactivated",
    "MultiKueue/XGBoostJob/fails",
    "Pod/life/drained",
    "PodGroup/life/owned",
    "PodGroup/life/workload-deleted",
    "RayCluster/life/deactivated",
    "RayCluster/life/elastic",
    "RayJob/life/x-autoscaled",
    "RayService/life/deactivated",
    "RayService/life/elastic-no-room",
    "StatefulSet/life/deactivated",
    "StatefulSet/life/zero-then-up",
];

/// Minimum share of messages of conditions that are as recorded, in percent.
const MIN_EQUAL_MESSAGES: usize = 95;

#[tokio::test(flavor = "multi_thread")]
async fn recorded_lives_of_every_kind_go_as_recorded() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/jobs/tests/kindsoracle");
    let mut recording = RecordedCases::default();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // A table of pods, and no cases.
        if !path.ends_with("role-hash.jsonl.gz") {
            replay::load(&path, &mut recording)?;
        }
    }
    let is_chosen = |name: &str| {
        OF_OTHERS.contains(&name) || OF_EVERY_KIND.iter().any(|end| name.ends_with(end))
    };
    let mut cases = recording.traces;
    cases.retain(|case| is_chosen(&case.case));
    let kinds: BTreeSet<&str> = cases.iter().map(|case| case.kind.as_str()).collect();
    assert_eq!(kinds.len(), 19, "{kinds:?}");
    let report = trace_replays::replay(&cases).await?;
    println!("{report}");
    assert_eq!(report.failed(), 0, "{report}");
    let percent = report.equal_messages_percent();
    assert!(percent >= MIN_EQUAL_MESSAGES, "{percent}: {:#?}", report.differing_details());
    let cut: BTreeSet<CutCase> = report.cut().iter().cloned().collect();
    assert_eq!(cut, replay::listed_cuts(), "cut-cases.tsv lists others");
    Ok(())
}
