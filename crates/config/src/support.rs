//! What each setting of Kueue does here: fields of the configuration file, feature gates, flags.
//!
//! `support.tsv` has a row for each (docs/reference/kueue.md §6.4, §6.5). The change that implements a setting changes its row: tests
//! compare the rows with the fields, gates and flags that exist, and with the files that read them.

use std::collections::BTreeSet;

use serde_json::Value;

/// The table of settings, tab separated.
const TABLE: &str = include_str!("support.tsv");

/// Where a setting is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// A field of the configuration file, in either version.
    Field,
    /// A feature gate.
    Gate,
    /// A feature gate that only other versions of Kueue have.
    ForeignGate,
    /// A flag of the command line.
    Flag,
}

/// What a setting does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It acts as in Kueue.
    Acts,
    /// The gate is as if it were set to this.
    Fixed(bool),
    /// Nothing depends on it.
    None,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingRow {
    /// Where the setting is made.
    pub kind: SettingKind,
    /// Its path or name.
    pub name: &'static str,
    /// What it does.
    pub support: Support,
    /// The file that reads it, or why it has no effect.
    pub note: &'static str,
}

/// A setting that was used and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IneffectiveSetting {
    /// Its path, as in the configuration file; of a flag with its dashes.
    pub name: String,
    /// Why it has no effect.
    pub reason: &'static str,
}

/// All rows. A line that is no row is left out; a test counts them.
pub fn rows() -> impl Iterator<Item = SettingRow> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(row)
}

fn row(line: &'static str) -> Option<SettingRow> {
    let mut columns = line.split('\t');
    let kind = match columns.next()? {
        "field" => SettingKind::Field,
        "gate" => SettingKind::Gate,
        "foreign-gate" => SettingKind::ForeignGate,
        "flag" => SettingKind::Flag,
        _ => return None,
    };
    let name = columns.next()?;
    let support = match columns.next()? {
        "acts" => Support::Acts,
        "on" => Support::Fixed(true),
        "off" => Support::Fixed(false),
        "none" => Support::None,
        _ => return None,
    };
    Some(SettingRow { kind, name, support, note: columns.next()? })
}

/// A flag that has no effect; `name` is without its dashes.
#[must_use]
pub fn ineffective_flag(name: &str) -> Option<IneffectiveSetting> {
    let row = rows().find(|row| row.kind == SettingKind::Flag && row.name == name)?;
    let ineffective = IneffectiveSetting { name: format!("--{name}"), reason: row.note };
    (row.support == Support::None).then_some(ineffective)
}

/// The row of a gate.
pub(super) fn of_gate(name: &str) -> Option<SettingRow> {
    rows().find(|row| row.kind == SettingKind::Gate && row.name == name)
}

/// The row of a gate that only other versions of Kueue have.
pub(super) fn of_foreign_gate(name: &str) -> Option<SettingRow> {
    rows().find(|row| row.kind == SettingKind::ForeignGate && row.name == name)
}

/// The fields without effect among these paths.
pub(super) fn ineffective_fields(
    set: &BTreeSet<String>,
) -> impl Iterator<Item = IneffectiveSetting> {
    let ineffective =
        rows().filter(|row| row.kind == SettingKind::Field && row.support == Support::None);
    let used = ineffective.filter(|row| set.contains(row.name));
    used.map(|row| IneffectiveSetting { name: row.name.to_owned(), reason: row.note })
}

/// Paths of all fields of a file.
pub(super) fn paths(file: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    add_paths("", file, &mut found);
    found
}

fn add_paths(above: &str, value: &Value, found: &mut BTreeSet<String>) {
    let elements = value.as_array().into_iter().flatten();
    elements.for_each(|element| add_paths(&format!("{above}[]"), element, found));
    for (field, value) in value.as_object().into_iter().flatten() {
        // A null is an absent setting: templates of manifests leave such lines.
        if value.is_null() {
            continue;
        }
        let path = if above.is_empty() { field.clone() } else { format!("{above}.{field}") };
        add_paths(&path, value, found);
        found.insert(path);
    }
}

#[cfg(test)]
mod tests;
