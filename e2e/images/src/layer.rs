//! The one layer of an image: a program and the certificates that it trusts.

use std::io::{self, Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use crate::digest::sha256;

/// The user and the group that the program runs as, and that own all files.
pub const USER: u64 = 65532;

/// Where TLS libraries look for the authorities of the system.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// A file of the layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerFile {
    /// Its path from the root, without a leading slash.
    pub path: String,
    /// Its mode.
    pub mode: u32,
    /// Its content.
    pub content: Vec<u8>,
}

/// The files of an image, sorted by path.
#[must_use]
pub fn files(name: &str, program: &[u8]) -> Vec<LayerFile> {
    let authorities = authorities().into_bytes();
    let mut files = vec![
        LayerFile { path: AUTHORITIES.to_owned(), mode: 0o444, content: authorities },
        LayerFile { path: name.to_owned(), mode: 0o555, content: program.to_vec() },
    ];
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// Mozilla's authorities, of the version in Cargo.lock.
fn authorities() -> String {
    let pem = TLS_SERVER_ROOT_CERTS.iter().map(|certificate| {
        let text = BASE64_STANDARD.encode(certificate);
        let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
        let lines: String = lines.map(|line| format!("{line}\n")).collect();
        format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n")
    });
    pem.collect()
}

/// A packed layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedLayer {
    /// The tar, compressed.
    pub content: Vec<u8>,
    /// The digest of the tar before its compression.
    pub diff_id: String,
}

/// Packs files into a layer that depends on nothing else: neither on times nor on the packing user.
///
/// # Errors
/// If a path is too long.
pub fn pack(files: &[LayerFile]) -> io::Result<PackedLayer> {
    let mut tar = Builder::new(Vec::new());
    for folder in folders(files) {
        append(&mut tar, EntryType::Directory, &format!("{folder}/"), 0o755, b"")?;
    }
    for file in files {
        append(&mut tar, EntryType::Regular, &file.path, file.mode, &file.content)?;
    }
    let tar = tar.into_inner()?;
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    packed.write_all(&tar)?;
    Ok(PackedLayer { content: packed.finish()?, diff_id: sha256(&tar) })
}

/// Appends an entry with fixed owner and time.
pub(crate) fn append(
    tar: &mut Builder<Vec<u8>>,
    kind: EntryType,
    path: &str,
    mode: u32,
    content: &[u8],
) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_path(path)?;
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(USER);
    header.set_gid(USER);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    header.set_cksum();
    tar.append(&header, content)
}

/// The folders above the files, outer ones first.
fn folders(files: &[LayerFile]) -> Vec<&str> {
    let above = |path| str::match_indices(path, '/').filter_map(move |(at, _)| path.get(..at));
    let mut folders: Vec<&str> = files.iter().flat_map(|file| above(&file.path)).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use tar::Archive;

    use super::*;

    #[test]
    fn a_layer_holds_every_folder_and_file_once() {
        let layer = pack(&files("sluice-manager", b"program")).expect("a layer");
        let mut tar = Vec::new();
        GzDecoder::new(&*layer.content).read_to_end(&mut tar).expect("a tar");
        assert_eq!(layer.diff_id, sha256(&tar));
        let mut archive = Archive::new(&*tar);
        let entries = archive.entries().expect("entries").map(|entry| {
            let entry = entry.expect("an entry");
            let header = entry.header();
            assert_eq!(header.uid().expect("a user"), USER);
            assert_eq!(header.gid().expect("a group"), USER);
            assert_eq!(header.mtime().expect("a time"), 0);
            let path = entry.path().expect("a path").display().to_string();
            (path, header.mode().expect("a mode"))
        });
        let expected = [
            ("etc/", 0o755),
            ("etc/ssl/", 0o755),
            ("etc/ssl/certs/", 0o755),
            (AUTHORITIES, 0o444),
            ("sluice-manager", 0o555),
        ];
        let expected = expected.map(|(path, mode)| (path.to_owned(), mode));
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_authority_is_in_the_bundle() {
        let bundle = authorities();
        let parts: Vec<&str> = bundle.split("-----BEGIN CERTIFICATE-----\n").skip(1).collect();
        assert_eq!(parts.len(), TLS_SERVER_ROOT_CERTS.len());
        for (part, certificate) in parts.iter().zip(TLS_SERVER_ROOT_CERTS) {
            let text = part.strip_suffix("-----END CERTIFICATE-----\n").expect("an end");
            assert!(text.lines().all(|line| line.len() <= 64));
            let bytes = BASE64_STANDARD.decode(text.replace('\n', "")).expect("base64");
            assert_eq!(bytes, certificate.as_ref());
        }
    }
}
