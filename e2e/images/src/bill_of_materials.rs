//! The bill of materials of an image, in CycloneDX 1.5: the packages inside of the program, Rust's own libraries, the C library and the
//! certificates.

use std::collections::BTreeSet;

use cargo_metadata::{Metadata, Package, PackageId};
use serde_json::{Value, json};

use crate::{
    definition::ImageDefinition, labels, linked_packages::LinkedPackages, program::CLibrary,
};

/// The package with the certificates of the image.
const AUTHORITIES: &str = "webpki-root-certs";

/// What an image was made of.
#[derive(Debug, Clone, Copy)]
pub struct BillOfMaterials<'a> {
    /// The image.
    pub image: &'a ImageDefinition,
    /// The packages inside of its program.
    pub linked: &'a LinkedPackages<'a>,
    /// All packages of the workspace; the one with the certificates is no part of the program.
    pub metadata: &'a Metadata,
    /// The C library inside of the program.
    pub c_library: &'a CLibrary,
    /// The version of the compiler and of its libraries.
    pub rust: &'a str,
    /// The digest of the program.
    pub program: &'a str,
    /// The digest of the image.
    pub digest: &'a str,
}

impl BillOfMaterials<'_> {
    /// The document. It depends on nothing else, so that the same image has the same one.
    #[must_use]
    pub fn document(&self) -> Value {
        let own = &self.linked.program.id;
        let others = self.linked.packages.iter().filter(|(id, _)| **id != own);
        let others = others.map(|(_, package)| component(package));
        let certificates = self.metadata.packages.iter().filter(|one| one.name == AUTHORITIES);
        let mut components: Vec<Value> = others.chain(certificates.map(component)).collect();
        components.extend([self.c_library(), self.rust()]);
        components.sort_by_key(reference);
        components.dedup_by_key(|one| reference(one));
        json!({
            "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "serialNumber": serial_number(self.digest),
            "metadata": {"component": self.program(), "tools": {"components": [tool()]}},
            "components": components,
            "dependencies": self.dependencies(),
        })
    }

    fn program(&self) -> Value {
        let mut program = component(self.linked.program);
        program["type"] = "application".into();
        program["name"] = self.image.program.into();
        program["hashes"] = json!([{"alg": "SHA-256", "content": self.program}]);
        program["properties"] = json!([
            {"name": "sluice:image:digest", "value": format!("sha256:{}", self.digest)},
        ]);
        program
    }

    /// What each package uses. Every Rust program uses the libraries of Rust and of C; the certificates are used at run time.
    fn dependencies(&self) -> Vec<Value> {
        let mut all: Vec<Value> = self
            .linked
            .uses
            .iter()
            .map(|(id, used)| {
                let mut names: BTreeSet<String> =
                    used.iter().filter_map(|id| self.reference_of(id)).collect();
                if *id == &self.linked.program.id {
                    names.extend([reference(&self.c_library()), reference(&self.rust())]);
                }
                json!({"ref": self.reference_of(id), "dependsOn": names})
            })
            .collect();
        all.sort_by_key(|one| one["ref"].to_string());
        all
    }

    fn reference_of(&self, id: &PackageId) -> Option<String> {
        self.linked.packages.get(id).map(|package| bom_reference(package))
    }

    /// Where the distribution is known, so is its package, with the version that its security notices name.
    fn c_library(&self) -> Value {
        let words: Vec<&str> = self.c_library.origin.split(' ').collect();
        let mut library = json!({
            "type": "library",
            "name": "glibc",
            "version": self.c_library.version,
            "description": self.c_library.origin,
            "licenses": [{"license": {"id": "LGPL-2.1-or-later"}}],
        });
        if let [distribution @ ("Debian" | "Ubuntu"), "GLIBC", version] = words[..] {
            let distribution = distribution.to_lowercase();
            library["version"] = version.into();
            let version = version.replace('+', "%2B");
            library["purl"] = format!("pkg:deb/{distribution}/glibc@{version}").into();
        }
        library["bom-ref"] = format!("glibc@{}", self.c_library.version).into();
        library
    }

    fn rust(&self) -> Value {
        json!({
            "type": "library",
            "name": "rust-std",
            "bom-ref": format!("rust-std@{}", self.rust),
            "version": self.rust,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        })
    }
}

fn tool() -> Value {
    json!({"type": "application", "name": "sluice-images", "version": env!("CARGO_PKG_VERSION")})
}

fn reference(component: &Value) -> String {
    component["bom-ref"].as_str().unwrap_or_default().to_owned()
}

fn component(package: &Package) -> Value {
    let reference = bom_reference(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": reference,
        "name": package.name,
        "version": package.version.to_string(),
    });
    // Packages of the workspace have names that packages of the registry have as well.
    if package.source.is_some() {
        component["purl"] = reference.into();
    }
    if let Some(licenses) = labels::licenses(package) {
        component["licenses"] = json!([{"expression": licenses}]);
    } else if let Some(file) = &package.license_file {
        component["licenses"] = json!([{"license": {"name": file.file_name()}}]);
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// The name of a package within the document. For one of the registry it is its package URL.
fn bom_reference(package: &Package) -> String {
    let kind = if package.source.is_some() { "pkg:cargo/" } else { "sluice:" };
    // A plus of a version would mean a space.
    let version = package.version.to_string().replace('+', "%2B");
    format!("{kind}{}@{version}", package.name)
}

/// A UUID (version 8) of the first bits of a digest.
fn serial_number(digest: &str) -> String {
    let part = |range| digest.get(range).unwrap_or_default();
    let (first, second, third) = (part(0..8), part(8..12), part(13..16));
    let (fourth, fifth) = (part(17..20), part(20..32));
    format!("urn:uuid:{first}-{second}-8{third}-8{fourth}-{fifth}")
}

#[cfg(test)]
mod tests {
    use super::serial_number;

    #[test]
    fn a_serial_number_has_the_form_of_a_uuid() {
        let number = serial_number("0123456789abcdef0123456789abcdef0123");
        assert_eq!(number, "urn:uuid:01234567-89ab-8def-8123-456789abcdef");
    }
}
