//! Conversion against what upstream's converter stored, and its round trip.

use std::{fs, io::Read, path::Path};

use crds::conversion::{ConversionError, convert};
use flate2::read::GzDecoder;
use serde_json::Value;

const KINDS: [&str; 5] = ["workload", "clusterqueue", "localqueue", "cohort", "multikueuecluster"];
const V1BETA1: &str = "kueue.x-k8s.io/v1beta1";
const V1BETA2: &str = "kueue.x-k8s.io/v1beta2";

/// The recorded objects of a kind in both versions.
fn recorded(kind: &str) -> Vec<(String, Value, Value)> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/apioracle/{kind}.jsonl.gz"));
    let mut text = String::new();
    let file = fs::File::open(path).expect("recorded cases");
    GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    text.lines()
        .filter_map(|line| both_versions(&serde_json::from_str(line).expect("JSON")))
        .collect()
}

fn both_versions(case: &Value) -> Option<(String, Value, Value)> {
    let expect = &case["expect"];
    let version = |name: &str| {
        let stored = &expect["stored"][name];
        let object = if stored == "=response" { &expect["response"] } else { stored };
        object["metadata"].is_object().then(|| object.clone())
    };
    Some((case["id"].as_str()?.to_owned(), version("v1beta1")?, version("v1beta2")?))
}

#[test]
fn reading_at_v1beta1_is_what_upstream_answers() {
    compare(|old, new| (convert(new, V1BETA1), old));
}

#[test]
fn there_and_back_keeps_everything_that_v1beta1_has() {
    compare(|old, _| {
        let back = convert(old.clone(), V1BETA2).and_then(|new| convert(new, V1BETA1));
        (back, old)
    });
}

/// Runs all recorded objects through a conversion that gives what we have and what is expected.
fn compare(conversion: impl Fn(Value, Value) -> (Result<Value, ConversionError>, Value)) {
    let mut compared = 0;
    let mut differences = Vec::new();
    for (id, old, new) in KINDS.iter().flat_map(|kind| recorded(kind)) {
        let (ours, expected) = conversion(old, new);
        let ours = ours.expect(&id);
        compared += 1;
        if ours != expected {
            differences.push(format!("{id}\n  ours     {ours}\n  expected {expected}"));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    assert!(compared > 300, "{compared} objects");
}
