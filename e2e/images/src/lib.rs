//! Images of the programs, made without a container engine: the same sources, revision and toolchain give the same digest.
//!
//! An image has one layer on nothing: a static program and the certificates of Mozilla's authorities. Beside it is a bill of
//! materials.
//!
//! | module | concept |
//! |---|---|
//! | [`definition`] | which images there are, their platforms |
//! | [`compilation`] | cargo builds the programs and says what went into them |
//! | [`program`] | a program's bytes: static, with which C library |
//! | [`linked_packages`] | the packages inside of a program |
//! | [`assembly`] | one image from its program |
//! | [`layer`] | the files of the image, packed |
//! | [`labels`] | what the image says about itself |
//! | [`archive`] | one tar for containerd, Docker and kind |
//! | [`bill_of_materials`] | CycloneDX |
//! | [`folder_image`] | a folder as an archive, for images with a file system of their own |
//! | [`ray`] | the image with the real Ray, for tests |
//! | [`revision`] | the revision of the sources |
//! | [`digest`] | SHA-256 |
//! | [`whole_file`] | files that are replaced as a whole |

pub mod archive;
pub mod assembly;
pub mod bill_of_materials;
pub mod compilation;
pub mod definition;
pub mod digest;
pub mod folder_image;
pub mod labels;
pub mod layer;
pub mod linked_packages;
pub mod program;
pub mod ray;
pub mod revision;
pub mod whole_file;
