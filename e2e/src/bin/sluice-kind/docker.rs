//! Whether Docker can be used.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A daemon that hangs takes connections and never answers.
const DEADLINE: Duration = Duration::from_secs(30);

/// Pause between two looks at the client.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Which daemon is asked.
#[derive(Clone, Copy)]
pub(crate) enum DaemonAddress {
    /// The one that the client finds by itself.
    OfEnvironment,
    /// The one at this address.
    Socket(&'static str),
}

/// Why it cannot be used, in one line.
pub(crate) fn unusable(address: DaemonAddress) -> Option<String> {
    let mut client = Command::new("docker");
    if let DaemonAddress::Socket(address) = address {
        client.args(["--host", address]);
    }
    client.args(["version", "--format", "{{.Server.Version}}"]);
    unanswered(&mut client, DEADLINE)
}

fn unanswered(client: &mut Command, deadline: Duration) -> Option<String> {
    client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    match client.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Some("docker is not installed".to_owned())
        }
        Err(error) => Some(format!("docker cannot be run: {error}")),
        Ok(asked) => failure(asked, deadline),
    }
}

fn failure(mut asked: Child, deadline: Duration) -> Option<String> {
    let begun = Instant::now();
    loop {
        match asked.try_wait() {
            Ok(Some(status)) if status.success() => return None,
            Ok(None) if begun.elapsed() < deadline => std::thread::sleep(POLL_INTERVAL),
            Ok(None) => {
                drop(asked.kill().and_then(|()| asked.wait()));
                let seconds = deadline.as_secs();
                return Some(format!("Docker's daemon does not answer in {seconds} s"));
            }
            Ok(Some(_)) | Err(_) => break,
        }
    }
    let mut said = String::new();
    drop(asked.stderr.map(|mut errors| errors.read_to_string(&mut said)));
    let said = said.trim().lines().last().unwrap_or_default();
    Some(format!("Docker's daemon does not answer: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_hangs_is_not_waited_for_without_end() {
        let mut hangs = Command::new("sleep");
        let said = unanswered(hangs.arg("1000"), Duration::from_millis(50));
        assert_eq!(said.as_deref(), Some("Docker's daemon does not answer in 0 s"));
        assert_eq!(unanswered(&mut Command::new("true"), DEADLINE), None);
    }
}
