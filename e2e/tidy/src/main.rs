//! `cargo run -p tidy`: lowers `ratchet.tsv` to the present measures; `cargo run -p tidy -- new` writes it from nothing.

use std::fs;

use anyhow::Result;
use cargo_metadata::MetadataCommand;
use tidy::{RATCHET, files, measures, packages, ratchet::Ratchet, root};

fn main() -> Result<()> {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).exec()?;
    let measures = measures(&packages::packages(&metadata), &files::read(&root())?);
    let path = root().join(RATCHET);
    let ratchet = if std::env::args().nth(1).is_some_and(|word| word == "new") {
        Ratchet::of(&measures)
    } else {
        Ratchet::parse(&fs::read_to_string(&path)?)?.lowered(&measures)
    };
    fs::write(path, ratchet.to_string())?;
    Ok(())
}
