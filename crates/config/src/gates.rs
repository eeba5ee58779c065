//! Feature gates: Kueue's names, defaults and dependencies (docs/reference/kueue.md §6.5).
//!
//! Invariant: an enabled gate has all gates that it depends on. A gate that was enabled explicitly without them is an error; a
//! gate that is on by default is turned off silently. A gate that only other versions of Kueue have is accepted and changes nothing.

mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

pub use table::{Gate, GateSpec, GateStage, TABLE};

use crate::support::{self, IneffectiveSetting, SettingRow, Support};

/// Sets every alpha gate that is not set by name.
const ALL_ALPHA: &str = "AllAlpha";
/// Sets every beta gate that is not set by name.
const ALL_BETA: &str = "AllBeta";

/// Why feature gates are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// Unknown name.
    #[error("{}unknown feature gate {name:?}", at(*.line))]
    Unknown {
        /// The name as given.
        name: String,
        /// The line in the configuration file.
        line: Option<u64>,
    },
    /// The gate is locked.
    #[error("{}feature gate {name} is locked to {locked}", at(*.line))]
    Locked {
        /// The gate.
        name: &'static str,
        /// The locked value.
        locked: bool,
        /// The line in the configuration file.
        line: Option<u64>,
    },
    /// Gates were enabled explicitly without gates that they depend on.
    #[error("{}", list(.0))]
    Unmet(Vec<UnmetGate>),
    /// Not of the form `Name=true`.
    #[error("feature gate {text:?} is not of the form Name=true or Name=false")]
    Malformed {
        /// The part of the flag.
        text: String,
    },
    /// Both the flag and the file set gates.
    #[error("feature gates are given both on the command line and in the configuration file")]
    Both,
}

/// An enabled gate that depends on one that is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnmetGate {
    /// The enabled gate.
    pub gate: Gate,
    /// The gate that is off.
    pub needs: Gate,
}

impl fmt::Display for UnmetGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gate {
            Gate::TASProfileMixed => f.write_str("cannot use a TAS profile with TAS disabled"),
            gate => write!(f, "{} requires {} to be enabled", gate.name(), self.needs.name()),
        }
    }
}

fn list(unmet: &[UnmetGate]) -> String {
    unmet.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn at(line: Option<u64>) -> String {
    line.map(|line| format!("line {line}: featureGates: ")).unwrap_or_default()
}

/// One setting of a gate, with its line if it comes from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateSetting {
    /// The name of the gate, or `AllAlpha` or `AllBeta`.
    pub name: String,
    /// On or off.
    pub on: bool,
    /// The line in the configuration file.
    pub line: Option<u64>,
}

/// The enabled feature gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gates {
    values: BTreeMap<Gate, bool>,
    /// Gates that were set, by name or with all of their stage.
    set: BTreeSet<Gate>,
    /// Gates of other versions that were set, and to what.
    foreign: BTreeMap<&'static str, bool>,
}

impl Default for Gates {
    fn default() -> Self {
        let values = TABLE.iter().map(|entry| (entry.gate, entry.default)).collect();
        Self { values, set: BTreeSet::new(), foreign: BTreeMap::new() }
    }
}

impl Gates {
    /// Whether `gate` is on.
    #[must_use]
    pub fn enabled(&self, gate: Gate) -> bool {
        self.values.get(&gate).copied().unwrap_or(false)
    }

    /// Gates that were set to what they do not do: an implemented gate does what it is set to.
    #[must_use]
    pub fn without_effect(&self) -> Vec<IneffectiveSetting> {
        let set = TABLE.iter().filter(|entry| self.set.contains(&entry.gate));
        let ineffective = set.filter_map(|entry| {
            let row = support::of_gate(entry.gate.name())?;
            let is_on = self.enabled(entry.gate);
            let ineffective = match row.support {
                Support::Acts => false,
                Support::Fixed(fixed) => fixed != is_on,
                // Its default says nothing else than its absence.
                Support::None => is_on != entry.default,
            };
            ineffective.then(|| ineffective_gate(row))
        });
        ineffective.chain(self.foreign_without_effect()).collect()
    }

    /// Those that only other versions have.
    fn foreign_without_effect(&self) -> impl Iterator<Item = IneffectiveSetting> {
        self.foreign.iter().filter_map(|(name, is_on)| {
            let row = support::of_foreign_gate(name)?;
            (row.support != Support::Fixed(*is_on)).then(|| ineffective_gate(row))
        })
    }

    /// Parses the flag, `A=true,B=false`.
    pub fn parse(flag: &str) -> Result<Self, GateError> {
        Self::resolve(&split(flag)?)
    }

    /// Resolves the gates of the flag or of the file; only one of them may set gates.
    pub fn from_sources(flag: &str, file: &[GateSetting]) -> Result<Self, GateError> {
        let flag = split(flag)?;
        match (flag.is_empty(), file.is_empty()) {
            (false, false) => Err(GateError::Both),
            (false, true) => Self::resolve(&flag),
            (true, _) => Self::resolve(file),
        }
    }

    /// Applies `AllAlpha` and `AllBeta`, then named gates, then dependencies.
    pub fn resolve(settings: &[GateSetting]) -> Result<Self, GateError> {
        let mut gates = Self::default();
        for (name, stage) in [(ALL_ALPHA, GateStage::Alpha), (ALL_BETA, GateStage::Beta)] {
            // Of several settings of a name the last one counts, as in a map of Go.
            if let Some(all) = settings.iter().rev().find(|settings| settings.name == name) {
                for entry in TABLE.iter().filter(|entry| entry.stage == stage) {
                    gates.values.insert(entry.gate, all.on);
                    gates.set.insert(entry.gate);
                }
            }
        }
        let mut named = BTreeMap::new();
        for one in settings.iter().filter(|one| one.name != ALL_ALPHA && one.name != ALL_BETA) {
            // A file of another version of Kueue has to start.
            if let Some(row) = support::of_foreign_gate(&one.name) {
                gates.foreign.insert(row.name, one.on);
                continue;
            }
            let entry = gate_spec(one)?;
            named.insert(entry.gate, one.on);
        }
        gates.values.extend(named.iter());
        gates.set.extend(named.keys());
        gates.resolve_dependencies(&named)?;
        Ok(gates)
    }

    /// Turns off gates that lack a dependency; an error for gates that were enabled by name.
    fn resolve_dependencies(&mut self, named: &BTreeMap<Gate, bool>) -> Result<(), GateError> {
        // Chains of dependencies are shorter than the table, so this many rounds reach a fixed point.
        for _ in TABLE {
            let before = self.clone();
            let idle = before.unmet().into_iter().map(|one| one.gate);
            let idle = idle.filter(|gate| named.get(gate) != Some(&true));
            self.values.extend(idle.map(|gate| (gate, false)));
            if *self == before {
                break;
            }
        }
        let unmet = self.unmet();
        if unmet.is_empty() { Ok(()) } else { Err(GateError::Unmet(unmet)) }
    }

    /// Enabled gates and what each lacks, in the order of the table.
    fn unmet(&self) -> Vec<UnmetGate> {
        let enabled = TABLE.iter().filter(|entry| self.enabled(entry.gate));
        let pairs = enabled.flat_map(|entry| {
            entry.needs.iter().map(|&needs| UnmetGate { gate: entry.gate, needs })
        });
        pairs.filter(|pair| !self.enabled(pair.needs)).collect()
    }
}

fn ineffective_gate(row: SettingRow) -> IneffectiveSetting {
    IneffectiveSetting { name: format!("featureGates.{}", row.name), reason: row.note }
}

fn gate_spec(setting: &GateSetting) -> Result<&'static GateSpec, GateError> {
    let (name, line) = (&setting.name, setting.line);
    let found = TABLE.iter().find(|entry| entry.gate.name() == name);
    let entry = found.ok_or_else(|| GateError::Unknown { name: name.clone(), line })?;
    if entry.locked && setting.on != entry.default {
        let (name, locked) = (entry.gate.name(), entry.default);
        return Err(GateError::Locked { name, locked, line });
    }
    Ok(entry)
}

fn split(flag: &str) -> Result<Vec<GateSetting>, GateError> {
    let pieces = flag.split(',').map(str::trim).filter(|piece| !piece.is_empty());
    pieces.map(parse_setting).collect()
}

fn parse_setting(piece: &str) -> Result<GateSetting, GateError> {
    let malformed = || GateError::Malformed { text: piece.to_owned() };
    let (name, value) = piece.split_once('=').ok_or_else(malformed)?;
    // What Go parses as a boolean, because upstream's flag accepts it.
    let on = match value.trim() {
        "true" | "True" | "TRUE" | "t" | "T" | "1" => true,
        "false" | "False" | "FALSE" | "f" | "F" | "0" => false,
        _ => return Err(malformed()),
    };
    Ok(GateSetting { name: name.trim().to_owned(), on, line: None })
}

#[cfg(test)]
mod tests;
