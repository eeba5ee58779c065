//! Writes the CRD manifests: `cargo run -p ray --bin ray-crdgen [-- FOLDER]`.

use std::{error::Error, fs, path::PathBuf};

use crds::crd;
use ray::definitions;

const COMMAND: &str = "cargo run -p ray --bin ray-crdgen";

fn main() -> Result<(), Box<dyn Error>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests");
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| default.to_owned()));
    fs::create_dir_all(&folder)?;
    let definitions = definitions::all();
    for definition in &definitions {
        fs::write(folder.join(definition.file_name()), crd::yaml(definition, COMMAND)?)?;
    }
    fs::write(folder.join("kustomization.yaml"), crd::kustomization(&definitions, COMMAND))?;
    Ok(())
}
