//! Writes the CRD manifests: `cargo run -p crds --bin crdgen [-- FOLDER]`.

use std::{error::Error, fs, path::PathBuf};

use crds::crd;

fn main() -> Result<(), Box<dyn Error>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests");
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| default.to_owned()));
    fs::create_dir_all(&folder)?;
    for definition in crd::all() {
        fs::write(folder.join(definition.file_name()), crd::yaml(&definition)?)?;
    }
    Ok(())
}
