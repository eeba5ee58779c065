//! Figures with targets, as a table and as keys of a JSON file.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// Which values meet a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Better {
    /// Values up to the target.
    Less,
    /// Values from the target on.
    More,
}

/// One measured figure.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Its key in the file.
    pub(crate) key: String,
    pub(crate) value: f64,
    /// The target, and the value aimed at. `None` for a figure that explains others.
    pub(crate) target: Option<(Better, f64, f64)>,
}

impl Figure {
    /// A figure that is to be at most `must`.
    pub(crate) fn at_most(key: &str, value: f64, must: f64, aim: f64) -> Self {
        Self { key: key.to_owned(), value, target: Some((Better::Less, must, aim)) }
    }

    /// A figure that is to be at least `must`.
    pub(crate) fn at_least(key: &str, value: f64, must: f64, aim: f64) -> Self {
        Self { key: key.to_owned(), value, target: Some((Better::More, must, aim)) }
    }

    /// A figure without a target.
    pub(crate) fn plain(key: &str, value: f64) -> Self {
        Self { key: key.to_owned(), value, target: None }
    }

    fn verdict(&self) -> &'static str {
        let Some((better, must, aim)) = self.target else {
            return "";
        };
        let meets = |bound| match better {
            Better::Less => self.value <= bound,
            Better::More => self.value >= bound,
        };
        match (meets(must), meets(aim)) {
            (_, true) => "met, as aimed",
            (true, false) => "met",
            (false, false) => "MISSED",
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<28} {:>10.2}", self.key, self.value)?;
        if let Some((better, must, aim)) = self.target {
            let sign = if better == Better::Less { "≤" } else { "≥" };
            write!(f, "   target {sign} {must:<6} aim {aim:<6} {}", self.verdict())?;
        }
        Ok(())
    }
}

/// Prints the figures and sets their keys in a file. Other keys of the file stay.
///
/// # Errors
/// If the file cannot be read or written.
pub(crate) fn record(path: &Path, figures: &[Figure], details: Map<String, Value>) -> Result<()> {
    for figure in figures {
        println!("{figure}");
    }
    let mut file = read(path)?;
    for figure in figures {
        set(&mut file, &figure.key, json!(figure.value));
    }
    file.extend(details);
    write(path, &serde_json::to_string_pretty(&file)?)?;
    println!("written to {}", path.display());
    Ok(())
}

/// Writes a file of results, and makes its folder.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// A count per Job or Workload.
#[expect(clippy::cast_precision_loss, reason = "counts of a short run")]
pub(crate) fn per(count: u64, jobs: usize) -> f64 {
    count as f64 / jobs.max(1) as f64
}

/// Bytes in the unit of memory figures.
#[expect(clippy::cast_precision_loss, reason = "less than a petabyte")]
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A file that is absent is empty.
fn read(path: &Path) -> Result<Map<String, Value>> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .with_context(|| format!("reading {}: not a JSON object", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// `a.b` is the key `b` of the object `a`.
fn set(file: &mut Map<String, Value>, key: &str, value: Value) {
    match key.split_once('.') {
        None => drop(file.insert(key.to_owned(), value)),
        Some((outer, inner)) => {
            let entry = file.entry(outer).or_insert_with(|| json!({}));
            if !entry.is_object() {
                *entry = json!({});
            }
            if let Some(object) = entry.as_object_mut() {
                set(object, inner, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_compared_with_both_bounds() {
        let verdict = |value| Figure::at_most("x", value, 60.0, 30.0).verdict();
        assert_eq!([30.0, 60.0, 60.1].map(verdict), ["met, as aimed", "met", "MISSED"]);
        let verdict = |value| Figure::at_least("x", value, 50.0, 65.0).verdict();
        assert_eq!([65.0, 50.0, 49.9].map(verdict), ["met, as aimed", "met", "MISSED"]);
    }

    #[test]
    fn keys_of_other_parts_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lab.json");
        let key = |key: &str| [Figure::plain(key, 1.0)];
        record(&path, &key("balance.a.wait"), Map::new()).expect("written");
        record(&path, &key("balance.b"), Map::new()).expect("written");
        record(&path, &key("gets"), Map::new()).expect("written");
        let file: Value =
            serde_json::from_str(&fs::read_to_string(&path).expect("read")).expect("JSON");
        assert_eq!(file, json!({"balance": {"a": {"wait": 1.0}, "b": 1.0}, "gets": 1.0}));
        fs::write(&path, "[]").expect("written");
        assert!(record(&path, &key("gets"), Map::new()).is_err(), "a foreign file is kept");
    }
}
