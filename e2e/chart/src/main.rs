//! Writes the generated files of the Helm chart: `cargo run -p chart --bin chartgen`.

use std::path::Path;

fn main() -> Result<(), chart::ChartError> {
    chart::write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}
