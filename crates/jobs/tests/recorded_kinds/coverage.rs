//! The table of recorded lives in `docs/kinds.md`: of each kind, in how many cases a part of its life shows, and which parts a test on the
//! lab shows. `sluice-lab replay` sends all of the cases to control planes. `WRITE_TABLE=1` writes the table in place of comparing it.

use std::{collections::BTreeMap, fs, path::Path};

use crate::{
    kinds_recording::cases,
    lab_tests::{LabTests, has_own, own_tests},
    life_parts::{PARTS, has_part, shows},
};

const BEGIN: &str = "<!-- generated: table of recorded cases -->\n";
const END: &str = "<!-- end -->";

/// What is known of a part of the life of a kind.
#[derive(Clone, Copy, Default)]
struct Coverage {
    /// Recorded cases that show it.
    recorded: usize,
    /// Those of them that a test replays on the lab.
    on_lab: usize,
}

impl Coverage {
    /// The cell of the table. A part that no test on the lab shows is in brackets, and `n/a` is one that the kind does not have.
    fn cell(self, kind: &str, part: &str) -> String {
        let Self { recorded, on_lab } = self;
        match (recorded + on_lab, has_own(kind, part)) {
            (0, false) if !has_part(kind, part) => "n/a".to_owned(),
            (0, false) => "–".to_owned(),
            (0, true) => "*".to_owned(),
            (_, true) => format!("{recorded}/{on_lab}*"),
            (_, false) if on_lab > 0 => format!("{recorded}/{on_lab}"),
            _ => format!("({recorded})"),
        }
    }
}

fn table() -> String {
    let lab = LabTests::read();
    let mut known: BTreeMap<String, [Coverage; PARTS.len()]> = BTreeMap::new();
    for case in files().iter().flat_map(|file| cases(file)) {
        let row = known.entry(case.kind().to_owned()).or_default();
        for (coverage, part) in row.iter_mut().zip(PARTS) {
            coverage.recorded += usize::from(shows(&case, part));
            coverage.on_lab += usize::from(lab.replay_shows(&case, part));
        }
    }
    let head = format!("| kind | {} |\n|{}\n", PARTS.join(" | "), "---|".repeat(PARTS.len() + 1));
    let rows = known.into_iter().map(|(kind, row)| {
        let cells = row.iter().zip(PARTS).map(|(one, part)| one.cell(&kind, part));
        format!("| {kind} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
    });
    head + &rows.collect::<String>() + "\nTests of their own:\n\n" + &own_tests()
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
