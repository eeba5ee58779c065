//! Replays recorded scheduling cases: `cargo run --release -p engine --example replay -- [-w] FILE…`
//!
//! Prints the failures with their first differing step, the share of equal words, and `N passed, M failed`. With `-w`
//! also the heads whose words differ, and the steps in which others were evaluated.

#[path = "../tests/replay/mod.rs"]
mod replay;

use std::path::Path;
use std::process::ExitCode;

#[expect(clippy::print_stdout, reason = "this is a command")]
fn main() -> anyhow::Result<ExitCode> {
    let (flags, files): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let (mut passed, mut failed, mut equal, mut words) = (0, 0, 0, 0);
    for file in &files {
        let tally = replay::replay(Path::new(file))?;
        for (id, difference) in &tally.failed {
            println!("FAILED {id}: {difference}");
        }
        if flags.iter().any(|flag| flag == "-w") {
            for difference in &tally.misspoken {
                println!("WORDS {difference}");
            }
            for difference in &tally.out_of_turn {
                println!("TURNS {difference}");
            }
        }
        passed += tally.passed;
        failed += tally.failed.len();
        equal += tally.words.0;
        words += tally.words.1;
    }
    println!("words: {equal} of {words} heads say the same");
    println!("{passed} passed, {failed} failed");
    Ok(ExitCode::from(u8::from(failed > 0)))
}
