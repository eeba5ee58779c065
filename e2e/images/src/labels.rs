//! What an image says about itself: the annotations that the OCI image specification defines.

use std::collections::BTreeMap;

use cargo_metadata::Package;

use crate::definition::ImageDefinition;

/// The labels of an image, sorted. `source` is the address of the repository.
#[must_use]
pub fn labels(
    image: &ImageDefinition,
    package: &Package,
    revision: &str,
    source: Option<&str>,
) -> BTreeMap<String, String> {
    let source = source.or(package.repository.as_deref()).unwrap_or_default();
    let labels = [
        ("title", image.title.to_owned()),
        ("version", tag(package)),
        ("revision", revision.to_owned()),
        ("source", source.to_owned()),
        ("licenses", licenses(package).unwrap_or_default()),
    ];
    let set = labels.into_iter().filter(|(_, value)| !value.is_empty());
    set.map(|(name, value)| (format!("org.opencontainers.image.{name}"), value)).collect()
}

/// The version of an image, which is also its tag.
#[must_use]
pub fn tag(package: &Package) -> String {
    format!("v{}", package.version)
}

/// The licenses of a package as an SPDX expression. Older packages write a slash, which SPDX does not have.
#[must_use]
pub fn licenses(package: &Package) -> Option<String> {
    package.license.as_ref().map(|licenses| licenses.replace('/', " OR "))
}
