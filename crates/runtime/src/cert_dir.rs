//! A serving certificate from a directory (`tls.crt`, `tls.key`), reloaded when the files change.
//!
//! A mounted Secret is replaced by swapping a symbolic link, so contents are compared and not file times.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{
    Stop,
    certs::CertPair,
    tls::{CertificateSlot, TlsError},
};

/// How often the files are read.
const PERIOD: Duration = Duration::from_secs(5);

/// Why the certificate of a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertDirError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What is wrong.
        source: std::io::Error,
    },
    /// The files are not a certificate with its private key.
    #[error("cannot use the certificate in {dir}: {source}")]
    Load {
        /// The directory.
        dir: String,
        /// What is wrong.
        source: TlsError,
    },
}

/// The certificate of a directory.
pub struct CertDir {
    dir: PathBuf,
    slot: Arc<CertificateSlot>,
    loaded: Option<CertPair>,
}

impl CertDir {
    /// Loads the certificate of `dir` into `slot`.
    ///
    /// # Errors
    /// If a file cannot be read, or the certificate is unusable.
    pub async fn open(dir: &Path, slot: Arc<CertificateSlot>) -> Result<Self, CertDirError> {
        let mut source = Self { dir: dir.to_owned(), slot, loaded: None };
        source.reload().await?;
        Ok(source)
    }

    /// Reads the files; true if they changed. After an error the slot keeps the previous certificate.
    ///
    /// # Errors
    /// If a file cannot be read, or certificate and key do not match.
    pub async fn reload(&mut self) -> Result<bool, CertDirError> {
        let certificate = self.read("tls.crt").await?;
        let key = self.read("tls.key").await?;
        let found = CertPair { certificate, key };
        // A mounted Secret is replaced as a whole; an unchanged pair is not parsed again.
        if self.loaded.as_ref() == Some(&found) {
            return Ok(false);
        }
        self.slot
            .load(&found.certificate, &found.key)
            .map_err(|source| CertDirError::Load { dir: self.dir.display().to_string(), source })?;
        self.loaded = Some(found);
        Ok(true)
    }

    async fn read(&self, file: &str) -> Result<String, CertDirError> {
        let path = self.dir.join(file);
        tokio::fs::read_to_string(&path)
            .await
            .map_err(|source| CertDirError::Read { path: path.display().to_string(), source })
    }

    /// Reloads the files periodically until `stop`.
    pub async fn follow(mut self, stop: Stop) {
        let mut ticks = tokio::time::interval(PERIOD);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            match self.reload().await {
                Ok(true) => tracing::info!(dir = %self.dir.display(), "certificate loaded"),
                Ok(false) => {}
                // Certificate and key are two files: a pair that does not match may be half of a
                // rotation.
                Err(error) => tracing::warn!(%error, "keeping the certificate in use"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::certs;

    fn write(dir: &Path, pair: &CertPair) {
        fs::write(dir.join("tls.crt"), &pair.certificate).expect("written");
        fs::write(dir.join("tls.key"), &pair.key).expect("written");
    }

    fn pair() -> CertPair {
        let now = "2026-03-01T12:00:00Z".parse().expect("a time");
        certs::make_authority("x", now).expect("a certificate")
    }

    #[tokio::test]
    async fn a_changed_certificate_is_loaded_once_and_an_invalid_one_never() {
        let dir = tempfile::tempdir().expect("a directory");
        let slot = CertificateSlot::new();
        let error = CertDir::open(dir.path(), slot.clone()).await.err().expect("no files");
        assert!(error.to_string().contains("tls.crt"), "{error}");
        assert!(!slot.is_loaded());

        write(dir.path(), &pair());
        let mut source = CertDir::open(dir.path(), slot.clone()).await.expect("a certificate");
        assert!(slot.is_loaded());
        assert!(!source.reload().await.expect("read"));

        let (one, other) = (pair(), pair());
        write(dir.path(), &CertPair { key: other.key, ..one });
        let error = source.reload().await.expect_err("a foreign key").to_string();
        assert!(error.starts_with("cannot use the certificate in "), "{error}");
        assert!(slot.is_loaded());

        write(dir.path(), &pair());
        assert!(source.reload().await.expect("read"));
    }
}
