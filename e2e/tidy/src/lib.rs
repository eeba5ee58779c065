//! The order of the workspace, as tests: each rule is a function that lists what breaks it, and the tests demand empty lists.
//!
//! | module | rule |
//! |---|---|
//! | [`dependencies`] | which crate may depend on which; one TLS provider |
//! | [`sources`] | length and name of files, width of comments, purity of the crates that decide, lints |
//! | [`citations`] | a cited document and section exists |
//! | [`maps`] | the map of a crate or module names every module |
//! | [`glossary`] | length of the glossary |
//! | [`links`] | links and paths in Markdown files lead to files |
//! | [`cycles`] | cycles of files within a crate |
//! | [`function_lengths`] | length of functions |
//! | [`tuple_parameters`] | functions take no tuples apart |
//! | [`machines`] | a machine of `control` has private fields only |
//! | [`questions`] | a function `is_…` or `has_…` changes nothing |
//! | [`impl_files`] | in how many files a type has methods |
//! | [`trait_examples`] | the page of a public trait shows an example |
//! | [`delegates`] | a type that forwards a trait forwards every method with a default |
//! | [`words`] | words for persons in comments and documents |
//! | [`home_made`] | home-made words in comments and names |
//! | [`lab_readme`] | the README of the lab lists every folder of tests and quotes tests |
//! | [`suites`] | the Makefile runs every suite |
//! | [`type_names`] | one meaning per type name |
//! | [`settings`] | the table of Kueue's settings says what the code reads |
//! | [`monitoring`] | alert rules and dashboards name metrics that exist |
//! | [`manifests`] | kustomizations name what exists, and all of it |
//!
//! Rules that are not met everywhere yet have rows in `ratchet.tsv` ([`ratchet`]). [`files`] and [`packages`] are the input.

pub mod citations;
pub mod cycles;
pub mod delegates;
pub mod dependencies;
pub mod files;
pub mod function_lengths;
pub mod glossary;
pub mod home_made;
pub mod impl_files;
pub mod lab_readme;
pub mod links;
pub mod machines;
pub mod manifests;
pub mod maps;
pub mod monitoring;
pub mod packages;
pub mod questions;
pub mod ratchet;
pub mod settings;
pub mod sources;
pub mod suites;
pub mod trait_examples;
pub mod tuple_parameters;
pub mod type_names;
pub mod words;

use std::path::{Path, PathBuf};

use crate::{files::TextFile, packages::WorkspacePackage, ratchet::Measure};

/// Where the rows of [`ratchet`] are, relative to the root.
pub const RATCHET: &str = "e2e/tidy/ratchet.tsv";

/// The root of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The measures of every rule that `ratchet.tsv` has rows for.
#[must_use]
pub fn measures(packages: &[WorkspacePackage], files: &[TextFile]) -> Vec<Measure> {
    let mut measures = cycles::measures(packages, files);
    measures.extend(words::measures(packages, files));
    measures.extend(type_names::measures(files));
    measures.extend(impl_files::measures(files));
    measures.extend(function_lengths::measures(files));
    measures.extend(tuple_parameters::measures(files));
    measures
}

#[cfg(test)]
mod tests;
