//! The recorded cases, and the list of those in which a difference is wanted.

use std::{collections::BTreeMap, io::Read, time::Duration};

use appwrapper::settings::{FaultTolerance, WrapperSettings};
use flate2::read::GzDecoder;
use serde_json::Value;

/// The cases of a file, in the order of their names.
pub(crate) fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/operatororacle/{file}.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let compressed = std::fs::read(path).expect("the recording");
    let mut text = String::new();
    GzDecoder::new(&compressed[..]).read_to_string(&mut text).expect("gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("a case")).collect()
}

/// Cases with a wanted difference, and the reason of each.
pub(crate) fn differences() -> BTreeMap<&'static str, &'static str> {
    let lines = include_str!("../differences.tsv").lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once('\t').expect("case, rule and reason")).collect()
}

/// The settings of a profile.
pub(crate) fn settings(profile: &str) -> WrapperSettings {
    if profile == "appwrapper" {
        return WrapperSettings::default();
    }
    assert_eq!(profile, "appwrapper-config");
    WrapperSettings {
        scheduler_name: Some("my-scheduler".to_owned()),
        default_queue_name: Some("default-queue".to_owned()),
        user_rbac_check: false,
        fault_tolerance: FaultTolerance {
            admission_grace: Duration::from_secs(20),
            warmup_grace: Duration::from_secs(30),
            failure_grace: Duration::from_secs(3),
            reset_pause: Duration::from_secs(4),
            retry_limit: 1,
            success_ttl: Duration::from_secs(9),
            ..FaultTolerance::default()
        },
        autopilot_resources: Vec::new(),
        ..WrapperSettings::default()
    }
}
