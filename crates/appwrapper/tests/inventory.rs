//! The generated CRDs against the inventory of the official ones: every field, bound, default, list type and column.

use appwrapper::definitions;
use crds::crd::{self, inventory};

const INVENTORY: &str = include_str!("data/crd-appwrapper.tsv");

const COMMAND: &str = "cargo run -p appwrapper --bin appwrapper-crdgen";

#[test]
fn every_line_of_the_inventory_is_in_the_manifests_and_no_other() {
    let definitions = definitions::all();
    assert_eq!(inventory::count(INVENTORY), 1, "one section per version of a kind");
    let differences = inventory::differences(INVENTORY, &definitions, "workload.codeflare.dev");
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn the_committed_manifests_are_fresh() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/");
    let read = |name: &str| std::fs::read_to_string(folder.to_owned() + name).unwrap_or_default();
    let definitions = definitions::all();
    for definition in &definitions {
        let generated = crd::yaml(definition, COMMAND).expect("a manifest");
        let name = definition.file_name();
        assert!(read(&name) == generated, "{name} is stale: {COMMAND}");
    }
    let listed = crd::kustomization(&definitions, COMMAND);
    assert!(read("kustomization.yaml") == listed, "kustomization.yaml is stale: {COMMAND}");
}
