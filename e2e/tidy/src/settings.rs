//! Settings of Kueue: one that acts is read by the file that its row names, and no other one is read.

use std::{collections::BTreeMap, path::Path};

use crate::files::TextFile;

/// The table of settings.
const TABLE: &str = "crates/config/src/support.tsv";

/// Where gates are defined, and settings are validated.
const DEFINITIONS: &str = "crates/config/src/gates";

/// Rows of the table that do not say what the code does.
#[must_use]
pub fn wrong(files: &[TextFile]) -> Vec<String> {
    let texts: BTreeMap<&Path, &TextFile> =
        files.iter().map(|file| (file.path.as_path(), file)).collect();
    let table = texts.get(Path::new(TABLE)).map_or("", |file| file.text.as_str());
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| line.split('\t').collect::<Vec<_>>().try_into().ok());
    rows.filter_map(|row: [&str; 4]| problem(row, files, &texts)).collect()
}

fn problem(
    [kind, name, support, note]: [&str; 4],
    files: &[TextFile],
    texts: &BTreeMap<&Path, &TextFile>,
) -> Option<String> {
    let word = match kind {
        "gate" => format!("Gate::{name}"),
        _ => snake_case(name.rsplit('.').next().unwrap_or_default()),
    };
    if support == "acts" {
        // A flag may be another name of one with its own.
        let alias = format!("\"{name}\"");
        let reads = |text: &str| has_word(text, &word) || kind == "flag" && text.contains(&alias);
        let read = texts.get(Path::new(note)).is_some_and(|file| reads(file.product()));
        return (!read).then(|| format!("{TABLE}: {note} does not read {name}"));
    }
    let reads = |file: &&TextFile| {
        let product = file.is_product() && !file.path.starts_with(DEFINITIONS);
        product && has_word(file.product(), &word)
    };
    // What the engine obeys is no effect as long as nothing reaches it.
    let reader = files.iter().filter(|_| kind == "gate" && support != "none").find(reads)?;
    Some(format!("{TABLE}: {name} has no effect, and {} reads it", reader.path.display()))
}

/// Whether a text has a word that no longer one contains.
fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text.get(..at), text.get(at + word.len()..));
        !before.is_some_and(|text| text.ends_with(inside))
            && !after.is_some_and(|text| text.starts_with(inside))
    })
}

/// A name of a field or flag as Rust writes it.
fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            '-' => out.push('_'),
            c if c.is_ascii_uppercase() => out.extend(['_', c.to_ascii_lowercase()]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_not_say_what_the_code_does_are_found() {
        let wrong_of = |table: &str| {
            wrong(&[
                TextFile::new(TABLE, table),
                TextFile::new("a.rs", "on(Gate::One), file.health_port, Gate::OneMore"),
            ])
        };
        assert_eq!(
            wrong_of("gate\tOne\tacts\ta.rs\nfield\thealth.healthPort\tacts\ta.rs\n"),
            [""; 0]
        );
        assert_eq!(wrong_of("# a\ngate\tMore\toff\twhy\n"), [""; 0]);
        for table in
            ["gate\tOneMo\tacts\ta.rs\n", "gate\tOne\ton\twhy\n", "field\tport\tacts\ta.rs\n"]
        {
            assert_eq!(wrong_of(table).len(), 1, "{table}");
        }
    }
}
