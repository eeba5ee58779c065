//! The table of recorded lives in `docs/kinds.md`: of each kind, in how many cases a part of its life shows. `sluice-lab replay`
//! sends these cases to control planes. `WRITE_TABLE=1` writes the table in place of comparing it.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

use crate::kinds_recording::{RecordedCase, cases};

const BEGIN: &str = "<!-- generated: table of recorded cases -->\n";
const END: &str = "<!-- end -->";

/// Parts of a life, in the order of columns.
const PARTS: [&str; 10] = [
    "webhook",
    "pod sets",
    "start",
    "evict",
    "restore",
    "finish",
    "reclaim",
    "mirror",
    "status back",
    "delete",
];

/// Whether a case shows a part of the life of its kind.
fn shows(case: &RecordedCase, part: &str) -> bool {
    // The pods of a group are what is started.
    let kind = if case.kind() == "PodGroup" { "Pod" } else { case.kind() };
    let started =
        if matches!(kind, "Deployment" | "StatefulSet" | "LeaderWorkerSet") { "Pod" } else { kind };
    let is_trace = !case.name().contains("/create/");
    let of_several_clusters = case.name().starts_with("MultiKueue/");
    let steps = case.all_steps();
    let mut of_manager = steps.iter().map(|step| step.on_cluster("manager"));
    let event = |about: &str, begins: &str| {
        let about = format!("{about}/");
        let begins = begins.to_owned();
        move |then: &Value| {
            listed(then, "events", |one| {
                let text = |field: &str| one[field].as_str().unwrap_or_default();
                text("about").starts_with(&about) && text("reason").starts_with(&begins)
            })
        }
    };
    match part {
        "webhook" => !is_trace && !of_several_clusters,
        "pod sets" => {
            of_manager.any(|then| has_workload(then, |one| one["spec"]["podSets"].is_array()))
        }
        "start" => of_manager.any(event(started, "Started")),
        "evict" => of_manager.any(event("Workload", "EvictedDueTo")),
        "restore" => of_manager.any(event(started, "Stopped")),
        "finish" => of_manager.any(|then| has_workload(then, is_over)),
        "reclaim" => of_manager
            .any(|then| has_workload(then, |one| one["status"]["reclaimablePods"].is_array())),
        "mirror" => {
            let mut of_worker = steps.iter().map(|step| step.on_cluster("worker"));
            of_several_clusters
                && of_worker.any(|then| listed(then, "changed", |one| one["kind"] == kind))
        }
        "status back" => steps.iter().any(|step| {
            let there = step.on_cluster("manager");
            step.is_sent_to_worker() && listed(there, "changed", |one| one["kind"] == kind)
        }),
        _ => of_manager.any(|then| {
            let own = format!("{kind}/");
            listed(then, "gone", |one| one.as_str().is_some_and(|name| name.starts_with(&own)))
        }),
    }
}

/// Whether a Workload ended with its job.
fn is_over(workload: &Value) -> bool {
    let conditions = workload["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| {
        one["type"] == "Finished" && (one["reason"] == "Succeeded" || one["reason"] == "Failed")
    })
}

fn has_workload(then: &Value, holds: impl Fn(&Value) -> bool) -> bool {
    listed(then, "changed", |one| one["kind"] == "Workload" && holds(one))
}

fn listed(then: &Value, list: &str, holds: impl Fn(&Value) -> bool) -> bool {
    then[list].as_array().into_iter().flatten().any(holds)
}

fn table() -> String {
    let mut counts: BTreeMap<String, [usize; PARTS.len()]> = BTreeMap::new();
    for case in files().iter().flat_map(|file| cases(file)) {
        let row = counts.entry(case.kind().to_owned()).or_default();
        for (count, part) in row.iter_mut().zip(PARTS) {
            *count += usize::from(shows(&case, part));
        }
    }
    let head = format!("| kind | {} |\n|{}\n", PARTS.join(" | "), "---|".repeat(PARTS.len() + 1));
    let rows = counts.into_iter().map(|(kind, row)| {
        let cells = row.map(|count| if count == 0 { "–".to_owned() } else { count.to_string() });
        format!("| {kind} | {} |\n", cells.join(" | "))
    });
    head + &rows.collect::<String>()
}

/// The recordings of lives.
fn files() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kindsoracle");
    let files = fs::read_dir(folder).expect("the recordings").flatten();
    let names = files
        .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".jsonl.gz")?.to_owned()));
    let mut names: Vec<String> = names.filter(|name| name != "role-hash").collect();
    names.sort_unstable();
    names
}

#[test]
fn the_documented_table_of_recorded_cases_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kinds.md");
    let document = fs::read_to_string(&path).expect("the document");
    let (before, rest) = document.split_once(BEGIN).expect("a place for the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    let expected = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("WRITE_TABLE").is_some() {
        fs::write(&path, &expected).expect("it is written");
    }
    let stale = "stale: run `WRITE_TABLE=1 cargo test -p jobs --test recorded_kinds coverage`";
    assert_eq!(fs::read_to_string(&path).ok(), Some(expected), "{stale}");
}
