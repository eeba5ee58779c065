//! Images that are made here: one layer, in the format of `docker save`, which `ctr images import` reads as well.

use std::io;

use ring::digest::{SHA256, digest};
use serde_json::json;
use tar::{Builder, EntryType, Header};

/// This module, for the keys of what is made of its images.
pub const CONTAINER_IMAGE_SOURCE: &str = include_str!("container_image.rs");

/// A file of an image.
#[derive(Debug)]
pub struct ImageFile {
    /// Its path from the root, without a leading slash.
    pub path: String,
    /// Its content, an executable program.
    pub program: Vec<u8>,
}

/// An image.
#[derive(Debug, Default)]
pub struct LabImage {
    /// Its name and tag.
    pub reference: String,
    /// Further names with tags.
    pub other_references: Vec<String>,
    /// Its programs.
    pub programs: Vec<ImageFile>,
    /// Names of the first program, as symbolic links in `bin`.
    pub links: Vec<String>,
    /// Its program, before the arguments of a pod.
    pub entrypoint: Vec<String>,
    /// The arguments when a pod names none.
    pub command: Vec<String>,
    /// `USER:GROUP`; root if it is empty, as with most public images.
    pub user: String,
}

impl LabImage {
    /// The archive. The same content gives the same bytes.
    ///
    /// # Errors
    /// If a path is too long.
    pub fn archive(&self) -> io::Result<Vec<u8>> {
        let layer = self.layer()?;
        let config = json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
            "os": "linux",
            "config": {
                "User": self.user,
                "Entrypoint": self.entrypoint,
                "Cmd": self.command,
                "Env": ["PATH=/bin"],
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hex(&layer))]},
        });
        let config = config.to_string().into_bytes();
        let name = format!("{}.json", hex(&config));
        let references: Vec<&String> =
            [&self.reference].into_iter().chain(&self.other_references).collect();
        let index = json!([{"Config": name, "RepoTags": references, "Layers": ["layer.tar"]}]);
        let mut tar = Builder::new(Vec::new());
        append(&mut tar, &name, 0o644, &config)?;
        append(&mut tar, "layer.tar", 0o644, &layer)?;
        append(&mut tar, "manifest.json", 0o644, index.to_string().as_bytes())?;
        tar.into_inner()
    }

    fn layer(&self) -> io::Result<Vec<u8>> {
        let mut tar = Builder::new(Vec::new());
        // `tmp` is for every user, as in public images; the others for programs and their mounts.
        for (folder, mode) in [("bin/", 0o755), ("etc/", 0o755), ("tmp/", 0o1777)] {
            tar.append_data(&mut header(EntryType::Directory, mode, 0), folder, io::empty())?;
        }
        for file in &self.programs {
            append(&mut tar, &file.path, 0o755, &file.program)?;
        }
        if let Some(first) = self.programs.first() {
            for link in &self.links {
                let mut header = header(EntryType::Symlink, 0o777, 0);
                tar.append_link(&mut header, format!("bin/{link}"), format!("/{}", first.path))?;
            }
        }
        tar.into_inner()
    }
}

fn append(tar: &mut Builder<Vec<u8>>, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
    tar.append_data(&mut header(EntryType::Regular, mode, content.len()), path, content)
}

fn header(kind: EntryType, mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size as u64);
    header
}

fn hex(content: &[u8]) -> String {
    digest(&SHA256, content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;

    fn entries(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().display().to_string(), content)
        });
        entries.collect()
    }

    #[test]
    fn an_archive_names_its_layer_by_digest_and_is_reproducible() {
        let image = LabImage {
            reference: "lab.sluice.dev/busybox:1".to_owned(),
            other_references: vec!["docker.io/library/busybox:1.37".to_owned()],
            programs: vec![ImageFile { path: "bin/busybox".to_owned(), program: b"x".to_vec() }],
            links: vec!["sh".to_owned()],
            command: vec!["sh".to_owned()],
            ..LabImage::default()
        };
        let archive = image.archive().unwrap();
        assert_eq!(archive, image.archive().unwrap());
        let files = entries(&archive);
        let index: serde_json::Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
        let references = ["lab.sluice.dev/busybox:1", "docker.io/library/busybox:1.37"];
        assert_eq!(index[0]["RepoTags"], serde_json::json!(references));
        let config = index[0]["Config"].as_str().unwrap();
        let config: serde_json::Value = serde_json::from_slice(&files[config]).unwrap();
        let layer = &files["layer.tar"];
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", hex(layer)));
        let names: Vec<String> = entries(layer).into_keys().collect();
        assert_eq!(names, ["bin/", "bin/busybox", "bin/sh", "etc/", "tmp/"]);
    }
}
