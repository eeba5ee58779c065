//! Recorded decisions of Kueue's scheduler, family by family: every case must give the same decisions, except those
//! listed here as open.

mod replay;

use std::path::Path;

/// A family, how many of its cases still differ, and how many heads of all compared may say something else.
struct Family {
    name: &'static str,
    cases: usize,
    open: usize,
    misspoken: usize,
}

const FAMILIES: [Family; 8] = [
    Family { name: "quota", cases: 360, open: 0, misspoken: 0 },
    Family { name: "fungibility", cases: 360, open: 0, misspoken: 0 },
    Family { name: "preemption", cases: 360, open: 0, misspoken: 0 },
    Family { name: "partial", cases: 360, open: 0, misspoken: 0 },
    Family { name: "fair", cases: 360, open: 0, misspoken: 0 },
    Family { name: "events", cases: 337, open: 0, misspoken: 0 },
    Family { name: "edge", cases: 389, open: 0, misspoken: 0 },
    Family { name: "topology", cases: 360, open: 0, misspoken: 0 },
];

#[test]
fn decisions_are_those_of_upstream() -> anyhow::Result<()> {
    for family in FAMILIES {
        let file = format!("tests/oracle/{}.jsonl.gz", family.name);
        let tally = replay::replay(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file))?;
        let failed: Vec<&str> = tally.failed.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(tally.passed + failed.len(), family.cases, "cases of {}", family.name);
        assert_eq!(failed.len(), family.open, "{} differs in {failed:?}", family.name);
        let turns = &tally.out_of_turn;
        assert!(turns.is_empty(), "heads of {}:\n{}", family.name, turns.join("\n"));
        let misspoken = tally.misspoken.len();
        assert_eq!(misspoken, family.misspoken, "heads of {} with other words", family.name);
    }
    Ok(())
}
