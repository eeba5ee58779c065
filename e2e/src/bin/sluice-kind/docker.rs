//! Whether Docker can be used.

use std::io::ErrorKind;
use std::process::Command;

/// Why it cannot be used, in one line.
pub(crate) fn unusable() -> Option<String> {
    let asked =
        Command::new("docker").args(["version", "--format", "{{.Server.Version}}"]).output();
    match asked {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Some("docker is not installed".to_owned())
        }
        Err(error) => Some(format!("docker cannot be run: {error}")),
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim().lines().last().unwrap_or_default();
            Some(format!("Docker's daemon does not answer: {said}"))
        }
    }
}
