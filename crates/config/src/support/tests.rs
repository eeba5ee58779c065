//! Every field, gate and flag has one row.

use serde_json::{Map, json};

use super::*;
use crate::{Configuration, gates, v1beta1::V1Beta1File};

/// A field that no version has.
const PROBE: &str = "__probe";

/// A decoder of one version; the error is its message.
type Read = fn(Value) -> Result<(), String>;

/// The names that a decoder expects where a file has an unknown field.
fn expected(read: Read, path: &[String]) -> Option<Vec<String>> {
    let innermost = Value::Object(Map::from_iter([(PROBE.to_owned(), json!(0))]));
    let file = path.iter().rev().fold(innermost, |inner, part| match part.as_str() {
        "[]" => json!([inner]),
        name => Value::Object(Map::from_iter([(name.to_owned(), inner)])),
    });
    let message = read(file).err()?;
    let names = message.strip_prefix(&format!("unknown field `{PROBE}`, "))?;
    let names: Vec<String> = names.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    (!names.is_empty()).then_some(names)
}

/// All fields that have no fields below them.
fn leaves(read: Read, path: &mut Vec<String>, found: &mut BTreeSet<String>) {
    for part in ["", "[]"] {
        if !part.is_empty() {
            path.push(part.to_owned());
        }
        let names = expected(read, path);
        for name in names.iter().flatten() {
            path.push(name.clone());
            leaves(read, path, found);
            path.pop();
        }
        if !part.is_empty() {
            path.pop();
        }
        if names.is_some() {
            return;
        }
    }
    found.insert(path.join(".").replace(".[]", "[]"));
}

fn fields() -> BTreeSet<String> {
    let v1beta1: Read = |file| {
        serde_json::from_value::<V1Beta1File>(file).map(drop).map_err(|error| error.to_string())
    };
    let v1beta2: Read = |file| {
        serde_json::from_value::<Configuration>(file).map(drop).map_err(|error| error.to_string())
    };
    let mut found = BTreeSet::new();
    [v1beta1, v1beta2].into_iter().for_each(|read| leaves(read, &mut Vec::new(), &mut found));
    found
}

fn covers(row: &SettingRow, field: &str) -> bool {
    let rest = field.strip_prefix(row.name);
    row.kind == SettingKind::Field
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[test]
fn every_line_is_a_row_and_no_setting_has_two() {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(rows().count(), lines);
    for row in rows() {
        let same = rows().filter(|other| (other.kind, other.name) == (row.kind, row.name));
        assert_eq!(same.count(), 1, "{row:?}");
        assert!(row.note.len() > 10, "{row:?}");
    }
}

#[test]
fn every_field_of_both_versions_has_one_row() {
    let fields = fields();
    for known in [
        "waitForPodsReady.requeuingStrategy.backoffBaseSeconds",
        "metrics.customLabels[].trackedValues",
        "multiKueue.clusterProfile.accessProviders[].execConfig.env[].name",
        "integrations.podOptions.podSelector.matchLabels",
        "queueVisibility",
    ] {
        assert!(fields.contains(known), "{known}: {fields:?}");
    }
    for field in &fields {
        assert_eq!(rows().filter(|row| covers(row, field)).count(), 1, "{field}");
    }
    for row in rows().filter(|row| row.kind == SettingKind::Field) {
        assert!(fields.iter().any(|field| covers(&row, field)), "{row:?}");
        assert!(!matches!(row.support, Support::Fixed(_)), "{row:?}");
    }
}

#[test]
fn every_gate_has_a_row_and_every_row_a_gate() {
    let gates: BTreeSet<&str> = gates::TABLE.iter().map(|entry| entry.gate.name()).collect();
    let named = rows().filter(|row| row.kind == SettingKind::Gate);
    assert_eq!(named.map(|row| row.name).collect::<BTreeSet<_>>(), gates);
}

#[test]
fn a_gate_of_other_versions_is_no_gate_of_this_one_and_is_fixed() {
    let foreign: Vec<SettingRow> =
        rows().filter(|row| row.kind == SettingKind::ForeignGate).collect();
    assert!(!foreign.is_empty());
    for row in foreign {
        assert!(gates::TABLE.iter().all(|entry| entry.gate.name() != row.name), "{row:?}");
        assert!(matches!(row.support, Support::Fixed(_)), "{row:?}");
    }
}
