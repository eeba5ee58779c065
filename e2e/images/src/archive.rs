//! An image as one tar, in two formats at once: an OCI image layout, and the index that `docker load` reads. Both name the same blobs.

use std::{collections::BTreeMap, fs::File, io, path::Path};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tar::{Archive, Builder, EntryType};

use crate::{
    definition::ImagePlatform,
    digest::sha256,
    layer::{PackedLayer, USER, append},
};

/// An image has no time of its own: the same input gives the same image.
const CREATED: &str = "1970-01-01T00:00:00Z";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// An image that is not packed yet.
#[derive(Debug, Clone, Copy)]
pub struct ContainerImage<'a> {
    /// The name of the program and of the image.
    pub name: &'a str,
    /// The tag.
    pub tag: &'a str,
    /// The machine that it is for.
    pub platform: ImagePlatform,
    /// Labels.
    pub labels: &'a BTreeMap<String, String>,
    /// The one layer.
    pub layer: &'a PackedLayer,
}

/// A packed image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageArchive {
    /// The tar.
    pub content: Vec<u8>,
    /// The digest of the image's manifest, which identifies the image in registries.
    pub digest: String,
}

/// Whether an archive can be read to its end and has the index of `docker load`.
///
/// # Errors
/// If it cannot be read, as one that was cut off.
pub fn is_complete(archive: &Path) -> io::Result<bool> {
    let mut found = false;
    for entry in Archive::new(File::open(archive)?).entries()? {
        let mut entry = entry?;
        found |= &*entry.path_bytes() == b"manifest.json";
        io::copy(&mut entry, &mut io::sink())?;
    }
    Ok(found)
}

/// Accepts an archive that [`is_complete`], before something is done with it.
///
/// # Errors
/// If it is not.
pub fn check(archive: &Path) -> anyhow::Result<()> {
    let complete =
        is_complete(archive).with_context(|| format!("reading {}", archive.display()))?;
    ensure!(
        complete,
        "{} is no whole archive of an image: it has no manifest.json",
        archive.display()
    );
    Ok(())
}

/// A content that is named by its digest.
struct Blob {
    digest: String,
    content: Vec<u8>,
}

impl ContainerImage<'_> {
    /// Packs the image.
    ///
    /// # Errors
    /// If a name is too long for the archive.
    pub fn pack(&self) -> anyhow::Result<ImageArchive> {
        let layer = Blob::new(self.layer.content.clone());
        let config = Blob::json(&self.config());
        let manifest = Blob::json(&self.manifest(&config, &layer));
        let blobs = [&config, &layer, &manifest];
        let mut entries: BTreeMap<String, Vec<u8>> =
            blobs.into_iter().map(|blob| (blob.path(), blob.content.clone())).collect();
        entries.insert("index.json".to_owned(), bytes(&self.index(&manifest)));
        entries.insert("manifest.json".to_owned(), bytes(&self.docker_index(&config, &layer)));
        entries.insert("oci-layout".to_owned(), bytes(&json!({"imageLayoutVersion": "1.0.0"})));
        let mut tar = Builder::new(Vec::new());
        for folder in ["blobs/", "blobs/sha256/"] {
            append(&mut tar, EntryType::Directory, folder, 0o755, b"")?;
        }
        for (path, content) in entries {
            append(&mut tar, EntryType::Regular, &path, 0o644, &content)?;
        }
        Ok(ImageArchive { content: tar.into_inner()?, digest: manifest.digest })
    }

    /// The name that `kubectl` and container engines show.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}:{}", self.name, self.tag)
    }

    fn config(&self) -> Value {
        json!({
            "architecture": self.platform.architecture,
            "os": "linux",
            "created": CREATED,
            "config": {
                "User": format!("{USER}:{USER}"),
                "Entrypoint": [format!("/{}", self.name)],
                "WorkingDir": "/",
                "Labels": self.labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [prefixed(&self.layer.diff_id)]},
            "history": [{"created": CREATED, "created_by": "sluice-images"}],
        })
    }

    fn manifest(&self, config: &Blob, layer: &Blob) -> Value {
        json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor(CONFIG),
            "layers": [layer.descriptor(LAYER)],
            "annotations": self.labels,
        })
    }

    fn index(&self, manifest: &Blob) -> Value {
        let mut descriptor = manifest.descriptor(MANIFEST);
        descriptor["platform"] = json!({"architecture": self.platform.architecture, "os": "linux"});
        // containerd needs a full name; a bare one means this registry.
        descriptor["annotations"] = json!({
            "io.containerd.image.name": format!("docker.io/library/{}", self.reference()),
            "org.opencontainers.image.ref.name": self.tag,
        });
        json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor]})
    }

    fn docker_index(&self, config: &Blob, layer: &Blob) -> Value {
        let tags = [self.reference()];
        json!([{"Config": config.path(), "RepoTags": tags, "Layers": [layer.path()]}])
    }
}

impl Blob {
    fn new(content: Vec<u8>) -> Self {
        Self { digest: sha256(&content), content }
    }

    fn json(value: &Value) -> Self {
        Self::new(bytes(value))
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.digest)
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({
            "mediaType": media_type,
            "digest": prefixed(&self.digest),
            "size": self.content.len(),
        })
    }
}

fn prefixed(digest: &str) -> String {
    format!("sha256:{digest}")
}

/// The keys of objects are sorted: `serde_json` keeps them so without its feature `preserve_order`.
fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_tar_and_a_half_archive_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("image.tar");
        let whole = crate::folder_image::tests::sample(folder.path());
        let half = &whole[..whole.len() / 2];
        for (content, wanted) in
            [(&whole[..], ""), (half, "reading "), (&[0; 1024], "no whole archive")]
        {
            std::fs::write(&place, content).expect("it is written");
            let said = check(&place).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains(wanted) && said.is_empty() == wanted.is_empty(), "{said}");
            assert!(wanted.is_empty() || said.contains("image.tar"), "{said}");
        }
    }
}
