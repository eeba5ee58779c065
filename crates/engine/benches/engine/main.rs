//! The engine measured: `cargo bench -p engine --bench engine` for time and memory, with `-- counts` for instructions.

mod counts;
mod floor;
mod house;
mod meter;
mod places;
mod shapes;
mod speed;

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

/// Where figures and what leads to them are written.
fn folder() -> PathBuf {
    let house = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| house.into());
    PathBuf::from(target).join("bench")
}
