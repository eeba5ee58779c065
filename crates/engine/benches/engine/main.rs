//! Benchmarks of the engine: `cargo bench -p engine --bench engine` for time and memory, with `-- counts` for
//! instructions.

mod counts;
mod floor;
mod meter;
mod queue_world;
mod shapes;
mod speed;
mod topology;

use std::path::PathBuf;

fn main() -> anyhow::Result<()> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let asked = |word: &str| asked.iter().any(|one| one == word);
    if asked(counts::COUNTED) {
        counts::run();
        Ok(())
    } else if asked("counts") {
        counts::check()
    } else {
        speed::report()
    }
}

/// Directory of the figures and of intermediate files.
fn folder() -> PathBuf {
    let house = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| house.into());
    PathBuf::from(target).join("bench")
}
