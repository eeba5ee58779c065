//! Metrics that alert rules, dashboards and documents name: each exists.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::Context;

use crate::files::TextFile;

/// The folder of alert rules and dashboards.
pub const FOLDER: &str = "config/monitoring";

/// The alert rules.
const ALERTS: &str = "config/monitoring/alerts.yaml";

/// Kueue's families, by their names without a prefix.
const FAMILIES: &str = "manager/src/kueue_metrics/families.rs";

/// Prefixes of metrics, and whether the name in the code has it, too.
const PREFIXES: [(&str, bool); 3] = [("multikueue_", true), ("kueue_", false), ("sluice_", false)];

/// What the encoder adds to a name.
const SUFFIXES: [&str; 4] = ["_total", "_bucket", "_sum", "_count"];

/// Metrics that a file of the folder, or a document, names and the code does not have.
///
/// # Errors
/// If a file cannot be read.
pub fn unknown(root: &Path, files: &[TextFile]) -> anyhow::Result<Vec<String>> {
    let folder = root.join(FOLDER);
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {FOLDER}"))?;
    let mut unknown = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let missing = metrics_in(&text).into_iter().filter(|name| !exists(name, files));
        let file = path.file_name().unwrap_or_default().display().to_string();
        unknown.extend(missing.map(|name| format!("{FOLDER}/{file} names {name}")));
    }
    let documented = files.iter().filter(|file| file.is_markdown());
    for file in documented {
        // Tables of Kueue's metrics shorten their names.
        let own = metrics_in(&file.text).into_iter().filter(|name| name.starts_with("sluice_"));
        let missing = own.filter(|name| !exists(name, files));
        unknown.extend(missing.map(|name| format!("{} names {name}", file.path.display())));
    }
    unknown.sort();
    Ok(unknown)
}

/// Alert rules that compare vectors of unlike labels without saying on which. Such a rule never fires.
///
/// # Errors
/// If the file cannot be read.
pub fn unmatched(root: &Path) -> anyhow::Result<Vec<String>> {
    let path = root.join(ALERTS);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {ALERTS}"))?;
    Ok(expressions(&text).filter(|rule| !is_matched(rule)).map(str::to_owned).collect())
}

/// The expressions of a file of alert rules.
fn expressions(text: &str) -> impl Iterator<Item = &str> {
    let rules = text.split("expr:").skip(1);
    rules.map(|rule| rule.split_once("\n      for:").map_or(rule, |(rule, _)| rule))
}

/// Whether all aggregations of an expression keep the same labels, or its operators name labels.
fn is_matched(expression: &str) -> bool {
    let mut kept = expression.split("by (").skip(1).map(|rest| {
        let labels = rest.split_once(')').map_or(rest, |(labels, _)| labels);
        labels.split(',').map(str::trim).collect::<BTreeSet<_>>()
    });
    let first = kept.next();
    kept.all(|labels| Some(labels) == first)
        || [" on (", " ignoring ("].iter().any(|matching| expression.contains(matching))
}

/// Words that begin with a prefix of metrics.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| PREFIXES.iter().any(|(prefix, _)| word.starts_with(prefix))).collect()
}

/// Whether a file registers or lists the family of a metric.
fn exists(metric: &str, files: &[TextFile]) -> bool {
    let stem = SUFFIXES.iter().find_map(|end| metric.strip_suffix(end)).unwrap_or(metric);
    let Some((prefix, whole)) = PREFIXES.iter().find(|(prefix, _)| stem.starts_with(prefix)) else {
        return false;
    };
    let name = if *whole { stem } else { stem.strip_prefix(prefix).unwrap_or(stem) };
    let literal = format!("\"{name}\"");
    let defines = |file: &&TextFile| {
        let registers = file.text.contains(".register(") || file.path == Path::new(FAMILIES);
        file.is_product() && registers && file.product().contains(&literal)
    };
    files.iter().any(|file| defines(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_unlike_labels_are_compared_on_some() {
        let text = "
    - alert: A
      expr: |
        sum by (q, r) (rate(a[1h])) > 0.5 * sum by (q) (rate(b[1h])) > 0
      for: 1h
    - alert: B
      expr: sum by (q, r) (a) > on (q) group_left () sum by (q) (b)
      for: 1h
    - alert: C
      expr: sum by (q, r) (a) unless sum by (r, q) (b)
      for: 1h
";
        let found: Vec<bool> = expressions(text).map(is_matched).collect();
        assert_eq!(found, [false, true, true]);
    }

    #[test]
    fn a_metric_exists_if_a_file_registers_its_family() {
        let files = [
            TextFile::new(FAMILIES, "A \"pending_workloads\" Gauge; name: \"multikueue_x\","),
            TextFile::new("a.rs", "registry.register(\"writes\", help, one);"),
            TextFile::new("b.rs", "let other = \"reads\";"),
        ];
        let text = "sum(rate(sluice_writes_total[5m])) by (multikueue_x_total) + kueue_pending_workloads \
                    > sluice_reads_total and kueue_pending";
        let missing: Vec<&str> =
            metrics_in(text).into_iter().filter(|name| !exists(name, &files)).collect();
        assert_eq!(missing, ["kueue_pending", "sluice_reads_total"]);
    }
}
