//! Writes the files that follow from the kinds of jobs: `cargo run -p jobs --bin kindgen`. With the path of a file of
//! definitions it prints the manifests of those kinds instead.

use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::Path,
};

use jobs::{Kinds, manifests};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::args().nth(1) {
        let kinds = Kinds::declared(&fs::read_to_string(path)?)?;
        return Ok(io::stdout().write_all(manifests::of_declared(&kinds).as_bytes())?);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in manifests::files(Kinds::built_in()) {
        fs::write(root.join(file.path), file.text)?;
    }
    let path = root.join("docs/kinds.md");
    let document = manifests::with_table(&fs::read_to_string(&path)?, Kinds::built_in());
    Ok(fs::write(path, document.ok_or("docs/kinds.md has no place for the table")?)?)
}
