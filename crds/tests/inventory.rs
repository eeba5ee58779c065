//! The generated CRDs against the inventory of upstream's: every field, bound, default, list type and column.
//!
//! `data/crd-kueue.tsv` holds a line for each field; the manifests are flattened to the same lines and compared.

use crds::crd::{self, inventory};

const INVENTORY: &str = include_str!("data/crd-kueue.tsv");

const COMMAND: &str = "cargo run -p crds --bin crdgen";

#[test]
fn every_line_of_the_inventory_is_in_the_manifests_and_no_other() {
    let definitions = crd::all();
    assert_eq!(inventory::count(INVENTORY), 22, "eleven kinds in two versions");
    let differences = inventory::differences(INVENTORY, &definitions, "kueue.x-k8s.io");
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
    for definition in crd::all() {
        let committed = std::fs::read_to_string(folder.to_owned() + &definition.file_name())
            .unwrap_or_default();
        let generated = crd::yaml(&definition, COMMAND).expect("a manifest");
        assert!(committed == generated, "{} is stale: {COMMAND}", definition.file_name());
    }
    let listed =
        std::fs::read_to_string(folder.to_owned() + "kustomization.yaml").unwrap_or_default();
    assert!(
        listed == crd::kustomization(&crd::all(), COMMAND),
        "kustomization.yaml is stale: {COMMAND}"
    );
}

#[test]
fn the_committed_field_types_are_fresh() {
    let committed = include_str!("../src/field_types.json");
    assert!(committed == crd::field_types(&crd::all()), "field_types.json is stale: {COMMAND}");
}
