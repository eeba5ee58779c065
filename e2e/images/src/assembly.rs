//! Puts an image together: archive and bill of materials of one program.

use std::collections::BTreeSet;

use anyhow::ensure;
use cargo_metadata::{Metadata, PackageId};

use crate::{
    archive::{ContainerImage, ImageArchive},
    bill_of_materials::BillOfMaterials,
    definition::{ImageDefinition, ImagePlatform},
    digest::sha256,
    labels,
    layer::{self, LayerFile},
    linked_packages, program,
};

/// What all images of a call share.
#[derive(Debug, Clone, Copy)]
pub struct ImageOrigin<'a> {
    /// The workspace.
    pub metadata: &'a Metadata,
    /// The packages that were compiled for the platform.
    pub compiled: &'a BTreeSet<PackageId>,
    /// The machine that the images are for.
    pub platform: ImagePlatform,
    /// The revision of the sources.
    pub revision: &'a str,
    /// The address of the repository, if it is not that of the package.
    pub source: Option<&'a str>,
    /// The version of the compiler.
    pub rust: &'a str,
}

/// An image and what is beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssembledImage {
    /// Name and tag.
    pub reference: String,
    /// The image.
    pub archive: ImageArchive,
    /// The bill of materials, as JSON.
    pub bill: Vec<u8>,
}

/// The files of an image, sorted by path.
///
/// # Errors
/// If the program is too large, or not as [`program::c_library`] demands.
pub fn files(image: &ImageDefinition, program: &[u8]) -> anyhow::Result<Vec<LayerFile>> {
    let (size, most) = (program.len(), image.most_bytes);
    ensure!(size <= most, "the program has {size} bytes; {most} are allowed");
    program::c_library(program)?;
    Ok(layer::files(image.program, program))
}

/// Assembles the image of a program.
///
/// # Errors
/// As [`files`], and if the workspace lacks the package.
pub fn assemble(
    image: &ImageDefinition,
    program: &[u8],
    origin: &ImageOrigin<'_>,
) -> anyhow::Result<AssembledImage> {
    let layer = layer::pack(&files(image, program)?)?;
    let linked = linked_packages::linked(origin.metadata, image.package, origin.compiled)?;
    let container = ContainerImage {
        name: image.program,
        tag: &labels::tag(linked.program),
        platform: origin.platform,
        labels: &labels::labels(image, linked.program, origin.revision, origin.source),
        layer: &layer,
    };
    let archive = container.pack()?;
    let bill = BillOfMaterials {
        image,
        linked: &linked,
        metadata: origin.metadata,
        c_library: &program::c_library(program)?,
        rust: origin.rust,
        program: &sha256(program),
        digest: &archive.digest,
    };
    let bill = serde_json::to_vec_pretty(&bill.document())?;
    Ok(AssembledImage { reference: container.reference(), archive, bill })
}
