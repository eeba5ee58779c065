//! The end of a log file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// No more than this is read, however long the lines are.
const READ_AT_MOST: u64 = 256 * 1024;

/// The last `lines` lines of a log; a note when it cannot be read.
pub fn tail(path: &Path, lines: usize) -> String {
    match read_end(path) {
        Ok(text) => {
            let all: Vec<&str> = text.lines().collect();
            all[all.len().saturating_sub(lines)..].join("\n")
        }
        Err(error) => format!("(cannot read {}: {error})", path.display()),
    }
}

fn read_end(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(READ_AT_MOST)))?;
    let mut bytes = Vec::new();
    file.take(READ_AT_MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_returned() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, "a\nb\nc\n").unwrap();
        assert_eq!(tail(&path, 2), "b\nc");
        assert_eq!(tail(&path, 9), "a\nb\nc");
        assert!(tail(&directory.path().join("none"), 2).contains("cannot read"));
    }

    #[test]
    fn a_huge_log_is_read_from_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, format!("{}\nlast", "x".repeat(1_000_000))).unwrap();
        assert_eq!(tail(&path, 1), "last");
    }
}
