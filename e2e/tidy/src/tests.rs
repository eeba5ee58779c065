use std::fs;

use cargo_metadata::{Metadata, MetadataCommand};

use super::*;
use crate::ratchet::Ratchet;

const NONE: [String; 0] = [];

fn metadata() -> Metadata {
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).exec().expect("cargo metadata")
}

fn files() -> Vec<TextFile> {
    let files = files::read(&root()).expect("the files");
    assert!(files.len() > 50, "only {} files found", files.len());
    files
}

#[test]
fn crates_depend_only_on_what_the_table_allows() {
    let metadata = metadata();
    assert_eq!(dependencies::forbidden(&metadata), NONE);
    assert_eq!(dependencies::unplaced(&metadata), NONE);
}

#[test]
fn there_is_one_tls_provider() {
    assert_eq!(dependencies::other_tls(&metadata()), NONE);
}

#[test]
fn no_file_is_too_long() {
    assert_eq!(sources::too_long(&files()), NONE);
}

#[test]
fn no_comment_is_too_wide() {
    assert_eq!(sources::too_wide(&files()), NONE);
}

#[test]
fn no_comment_or_name_has_a_home_made_word() {
    assert_eq!(home_made::found(&files()), NONE);
}

#[test]
fn every_citation_names_a_document_and_a_section_that_exist() {
    assert_eq!(citations::broken(&files()), NONE);
}

#[test]
fn every_link_of_a_document_leads_to_a_file() {
    assert_eq!(links::dead(&root(), &files()), NONE);
}

#[test]
fn the_readme_of_the_lab_lists_the_tests_and_quotes_them() {
    assert_eq!(lab_readme::wrong(&files()), NONE);
}

#[test]
fn every_map_names_all_modules() {
    assert_eq!(maps::unnamed(&files()), NONE);
}

#[test]
fn the_glossary_is_short() {
    assert_eq!(glossary::wrong(&files()), None);
}

#[test]
fn measures_stay_within_their_limits() {
    let table = fs::read_to_string(root().join(RATCHET)).expect("the table");
    let ratchet = Ratchet::parse(&table).expect("the table");
    assert_eq!(ratchet.exceeded(&measures(&packages::packages(&metadata()), &files())), NONE);
}

#[test]
fn the_page_of_every_public_trait_shows_an_example() {
    assert_eq!(trait_examples::missing(&files()), NONE);
}

#[test]
fn no_machine_has_an_open_field() {
    assert_eq!(machines::open_fields(&files()), NONE);
}

#[test]
fn no_question_acts() {
    assert_eq!(questions::acting(&files()), NONE);
}

#[test]
fn a_forwarded_trait_is_forwarded_whole() {
    assert_eq!(delegates::differences(&files()), NONE);
}

#[test]
fn every_file_is_named_after_its_concept() {
    assert_eq!(sources::nameless(&files()), NONE);
}

#[test]
fn pure_crates_do_not_await_and_have_no_clock() {
    assert_eq!(sources::impure(&files()), NONE);
}

#[test]
fn the_table_of_settings_says_what_the_code_reads() {
    assert_eq!(settings::wrong(&files()), NONE);
}

#[test]
fn monitoring_names_metrics_that_exist() {
    assert_eq!(monitoring::unknown(&root(), &files()).expect("the files"), NONE);
}

#[test]
fn alert_rules_compare_vectors_of_like_labels() {
    assert_eq!(monitoring::unmatched(&root()).expect("the file"), NONE);
}

#[test]
fn every_crate_takes_over_the_lints() {
    let metadata = metadata();
    let manifests =
        metadata.workspace_packages().into_iter().map(|p| p.manifest_path.clone().into());
    assert_eq!(sources::without_lints(manifests).expect("the manifests"), NONE);
}

#[test]
fn kustomizations_name_all_manifests_and_nothing_else() {
    for folder in
        ["config", "crds/manifests", "crates/ray/manifests", "crates/appwrapper/manifests"]
    {
        let manifests = manifests::read(&root().join(folder)).expect("the manifests");
        assert!(manifests.folders().count() > 0, "{folder}");
        assert_eq!(manifests.missing(), NONE);
        assert_eq!(manifests.left_out(), NONE);
    }
}

#[test]
fn the_makefile_runs_every_suite() {
    assert_eq!(suites::elsewhere(&metadata()), NONE);
}
