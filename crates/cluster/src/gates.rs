//! Feature gates: upstream's names, defaults and dependencies (docs/reference/kueue.md §6.5).
//!
//! Invariant: a [`Gates`] never has a gate on whose needs are off because somebody asked for it; a gate that is on by
//! default goes off quietly with what it needs.

mod table;

use std::collections::BTreeMap;

pub use table::{Entry, Gate, Stage, TABLE};

/// The switch for every alpha gate that is not named itself.
const ALL_ALPHA: &str = "AllAlpha";
/// The switch for every beta gate that is not named itself.
const ALL_BETA: &str = "AllBeta";

/// Why gates were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// No gate has this name.
    #[error("{}unknown feature gate {name:?}", at(*.line))]
    Unknown {
        /// The name as given.
        name: String,
        /// Where in the configuration file.
        line: Option<u64>,
    },
    /// The gate cannot be changed.
    #[error("{}feature gate {name} is locked to {locked}", at(*.line))]
    Locked {
        /// The gate.
        name: &'static str,
        /// What it is locked to.
        locked: bool,
        /// Where in the configuration file.
        line: Option<u64>,
    },
    /// A gate was asked for without one that it needs.
    #[error("feature gate {name} needs {needs}, which is off")]
    Needs {
        /// The gate.
        name: &'static str,
        /// What is missing.
        needs: &'static str,
    },
    /// Not of the form `Name=true`.
    #[error("feature gate {text:?} is not of the form Name=true or Name=false")]
    Malformed {
        /// The piece of the flag.
        text: String,
    },
    /// The flag and the file both name gates.
    #[error("feature gates are given both on the command line and in the configuration file")]
    Both,
}

fn at(line: Option<u64>) -> String {
    line.map(|line| format!("line {line}: featureGates: ")).unwrap_or_default()
}

/// What somebody asked for, with its line when it came from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateSetting {
    /// The gate's name, or `AllAlpha`, `AllBeta`.
    pub name: String,
    /// On or off.
    pub on: bool,
    /// Where in the configuration file.
    pub line: Option<u64>,
}

/// Which gates are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gates(BTreeMap<Gate, bool>);

impl Default for Gates {
    fn default() -> Self {
        Self(TABLE.iter().map(|entry| (entry.gate, entry.default)).collect())
    }
}

impl Gates {
    /// Whether `gate` is on.
    #[must_use]
    pub fn enabled(&self, gate: Gate) -> bool {
        self.0.get(&gate).copied().unwrap_or(false)
    }

    /// Reads the flag's form, `A=true,B=false`.
    pub fn parse(flag: &str) -> Result<Self, GateError> {
        Self::resolve(&split(flag)?)
    }

    /// Resolves the flag and the file's map; at most one of them may say anything.
    pub fn from_sources(flag: &str, file: &[GateSetting]) -> Result<Self, GateError> {
        let flag = split(flag)?;
        match (flag.is_empty(), file.is_empty()) {
            (false, false) => Err(GateError::Both),
            (false, true) => Self::resolve(&flag),
            (true, _) => Self::resolve(file),
        }
    }

    /// Applies `AllAlpha` and `AllBeta`, then the named gates, then what gates need.
    pub fn resolve(asked: &[GateSetting]) -> Result<Self, GateError> {
        let mut gates = Self::default();
        for (name, stage) in [(ALL_ALPHA, Stage::Alpha), (ALL_BETA, Stage::Beta)] {
            if let Some(all) = asked.iter().rev().find(|asked| asked.name == name) {
                for entry in TABLE.iter().filter(|entry| entry.stage == stage) {
                    gates.0.insert(entry.gate, all.on);
                }
            }
        }
        let mut named = BTreeMap::new();
        for one in asked.iter().filter(|one| one.name != ALL_ALPHA && one.name != ALL_BETA) {
            let entry = entry(one)?;
            named.insert(entry.gate, one.on);
        }
        gates.0.extend(named.iter());
        gates.settle(&named)?;
        Ok(gates)
    }

    /// Turns off what stands on a gate that is off, or refuses it if it was asked for by name.
    fn settle(&mut self, named: &BTreeMap<Gate, bool>) -> Result<(), GateError> {
        // Chains of needs are shorter than the table, so this many rounds reach a fixed point.
        for _ in TABLE {
            let before = self.clone();
            for entry in TABLE.iter().filter(|entry| before.enabled(entry.gate)) {
                let Some(missing) = entry.needs.iter().find(|need| !before.enabled(**need)) else {
                    continue;
                };
                if named.get(&entry.gate) == Some(&true) {
                    let (name, needs) = (entry.gate.name(), missing.name());
                    return Err(GateError::Needs { name, needs });
                }
                self.0.insert(entry.gate, false);
            }
            if *self == before {
                break;
            }
        }
        Ok(())
    }
}

fn entry(asked: &GateSetting) -> Result<&'static Entry, GateError> {
    let (name, line) = (&asked.name, asked.line);
    let found = TABLE.iter().find(|entry| entry.gate.name() == name);
    let entry = found.ok_or_else(|| GateError::Unknown { name: name.clone(), line })?;
    if entry.locked && asked.on != entry.default {
        let (name, locked) = (entry.gate.name(), entry.default);
        return Err(GateError::Locked { name, locked, line });
    }
    Ok(entry)
}

fn split(flag: &str) -> Result<Vec<GateSetting>, GateError> {
    let pieces = flag.split(',').map(str::trim).filter(|piece| !piece.is_empty());
    pieces.map(one).collect()
}

fn one(piece: &str) -> Result<GateSetting, GateError> {
    let malformed = || GateError::Malformed { text: piece.to_owned() };
    let (name, value) = piece.split_once('=').ok_or_else(malformed)?;
    let on = match value.trim() {
        "true" | "True" | "TRUE" | "t" | "T" | "1" => true,
        "false" | "False" | "FALSE" | "f" | "F" | "0" => false,
        _ => return Err(malformed()),
    };
    Ok(GateSetting { name: name.trim().to_owned(), on, line: None })
}

#[cfg(test)]
mod tests;
