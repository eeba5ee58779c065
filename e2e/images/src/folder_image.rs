//! A folder as an archive of `docker save`, which containerd, Docker and kind read. It is written piece by piece: a folder may be larger
//! than the memory that is free.
//!
//! The same files give the same bytes: names are sorted, times are zero, all files belong to root, and modes are those of programs and of
//! files.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::digest::{hexadecimal, sha256};

/// This module, for the keys of images that it writes.
pub const FOLDER_IMAGE_SOURCE: &str = include_str!("folder_image.rs");

/// An image of the files of a folder.
#[derive(Debug, Clone, Copy)]
pub struct FolderImage<'a> {
    /// Its name and tag.
    pub reference: &'a str,
    /// The folder.
    pub root: &'a Path,
    /// The environment of its containers.
    pub environment: &'a [&'a str],
    /// Where its containers start.
    pub working_directory: &'a str,
    /// What its containers run, unless they say more.
    pub command: &'a [&'a str],
}

impl FolderImage<'_> {
    /// Writes the archive. The folder is read twice, for the digest of the layer and for its bytes, so that the disk need not hold the
    /// layer apart from the archive.
    ///
    /// # Errors
    /// If a file cannot be read or written, or changes meanwhile.
    pub fn write(&self, archive: &Path) -> Result<()> {
        let layer = write_layer(self.root, io::sink())
            .with_context(|| format!("reading {}", self.root.display()))?;
        self.join(archive, &layer).with_context(|| format!("writing {}", archive.display()))
    }

    fn join(&self, archive: &Path, layer: &WrittenLayer) -> io::Result<()> {
        let config = self.config(&layer.diff_id).to_string().into_bytes();
        let name = format!("{}.json", sha256(&config));
        let index =
            json!([{"Config": name, "RepoTags": [self.reference], "Layers": ["layer.tar"]}]);
        let index = index.to_string().into_bytes();
        let mut tar = Builder::new(BufWriter::with_capacity(1 << 20, File::create(archive)?));
        append(&mut tar, &name, &config)?;
        let mut header = header(EntryType::Regular, 0o644, layer.size);
        header.set_path("layer.tar")?;
        header.set_cksum();
        // The size of a tar is a multiple of that of its blocks, so that nothing lies between it and the next entry.
        let output = tar.get_mut();
        output.write_all(header.as_bytes())?;
        if write_layer(self.root, output)? != *layer {
            return Err(io::Error::other("the folder has changed"));
        }
        append(&mut tar, "manifest.json", &index)?;
        tar.into_inner()?.into_inner()?.sync_all()
    }

    fn config(&self, diff_id: &str) -> Value {
        json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Env": self.environment,
                "WorkingDir": self.working_directory,
                "Cmd": self.command,
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{diff_id}")]},
        })
    }
}

/// A layer that was written somewhere.
#[derive(Debug, PartialEq, Eq)]
struct WrittenLayer {
    diff_id: String,
    size: u64,
}

/// Packs a folder.
fn write_layer<W: Write>(root: &Path, output: W) -> io::Result<WrittenLayer> {
    let mut tar = Builder::new(DigestedOutput { output, digest: Sha256::new(), size: 0 });
    append_folder(&mut tar, root, Path::new(""))?;
    let DigestedOutput { digest, size, .. } = tar.into_inner()?;
    Ok(WrittenLayer { diff_id: hexadecimal(&digest.finalize()), size })
}

/// Appends what is in a folder below the root, in order of the names.
fn append_folder<W: Write>(tar: &mut Builder<W>, root: &Path, folder: &Path) -> io::Result<()> {
    let entries = fs::read_dir(root.join(folder))?;
    let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    let mut names = names?;
    names.sort();
    for name in names {
        let path = folder.join(name);
        let metadata = fs::symlink_metadata(root.join(&path))?;
        append_entry(tar, root, &path, &metadata)?;
        if metadata.is_dir() {
            append_folder(tar, root, &path)?;
        }
    }
    Ok(())
}

fn append_entry<W: Write>(
    tar: &mut Builder<W>,
    root: &Path,
    path: &Path,
    metadata: &Metadata,
) -> io::Result<()> {
    let source: PathBuf = root.join(path);
    if metadata.is_symlink() {
        let mut header = header(EntryType::Symlink, 0o777, 0);
        return tar.append_link(&mut header, path, fs::read_link(source)?);
    }
    let mode = metadata.permissions().mode();
    if metadata.is_dir() {
        // Only the folders for temporary files have the sticky bit.
        let mode = if mode & 0o1000 == 0 { 0o755 } else { 0o1777 };
        return tar.append_data(&mut header(EntryType::Directory, mode, 0), path, io::empty());
    }
    let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
    let mut header = header(EntryType::Regular, mode, metadata.len());
    tar.append_data(&mut header, path, File::open(source)?)
}

fn append<W: Write>(tar: &mut Builder<W>, path: &str, content: &[u8]) -> io::Result<()> {
    tar.append_data(&mut header(EntryType::Regular, 0o644, content.len() as u64), path, content)
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header
}

/// An output, and digest and length of what was written to it.
struct DigestedOutput<W> {
    output: W,
    digest: Sha256,
    size: u64,
}

impl<W: Write> Write for DigestedOutput<W> {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        let written = self.output.write(content)?;
        self.digest.update(content.get(..written).unwrap_or(content));
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use tar::Archive;

    use super::*;
    use crate::archive::is_complete;

    /// A small archive, made in a new folder of `place`.
    pub(crate) fn sample(place: &Path) -> Vec<u8> {
        let root = tempfile::tempdir_in(place).expect("a folder");
        fs::create_dir_all(root.path().join("files/bin")).expect("it is made");
        fs::write(root.path().join("files/bin/z"), "program").expect("it is written");
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(root.path().join("files/bin/z"), mode).expect("permissions");
        fs::write(root.path().join("files/a"), vec![7; 100_000]).expect("it is written");
        symlink("/bin/z", root.path().join("files/y")).expect("a link");
        let image = FolderImage {
            reference: "lab.sluice.dev/x:1",
            root: &root.path().join("files"),
            environment: &["A=b"],
            working_directory: "/",
            command: &["/bin/z"],
        };
        image.write(&root.path().join("x.tar")).expect("it is written");
        fs::read(root.path().join("x.tar")).expect("it is there")
    }

    fn entries(archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut archive = Archive::new(archive);
        let entries = archive.entries().expect("entries").map(|entry| {
            let mut entry = entry.expect("an entry");
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("its content");
            let path = entry.path().expect("a path").display().to_string();
            (path, entry.header().mode().expect("a mode"), content)
        });
        entries.collect()
    }

    #[test]
    fn equal_folders_give_equal_archives_that_name_their_layer_by_digest() {
        let place = tempfile::tempdir().expect("a folder");
        let archive = sample(place.path());
        assert_eq!(archive, sample(place.path()));
        let files = entries(&archive);
        let [(config, _, text), (_, _, layer), _] = &files[..] else { unreachable!("{files:?}") };
        assert_eq!(*config, format!("{}.json", sha256(text)));
        let text: Value = serde_json::from_slice(text).expect("JSON");
        assert_eq!(text["rootfs"]["diff_ids"][0], format!("sha256:{}", sha256(layer)));
        let inside: Vec<(String, u32)> =
            entries(layer).into_iter().map(|(path, mode, _)| (path, mode)).collect();
        let expected = [("a", 0o644), ("bin", 0o755), ("bin/z", 0o755), ("y", 0o777)];
        assert_eq!(inside, expected.map(|(path, mode)| (path.to_owned(), mode)));
        let written = place.path().join("x.tar");
        fs::write(&written, &archive).expect("it is written");
        assert!(is_complete(&written).expect("it is read"));
    }
}
