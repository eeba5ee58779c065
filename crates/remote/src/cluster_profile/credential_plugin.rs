//! Runs the command of a provider of credentials.
//!
//! The command gets the environment of the manager, no input, and a deadline. Its output is bounded and never logged; its errors go to
//! those of the manager, as under client-go.

use std::{io, process::Stdio, time::Duration};

use config::{ALWAYS_INTERACTIVE, AccessProvider};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
    sync::Semaphore,
    time,
};

use crate::cluster_profile::{
    ProfileAccess,
    exec_credential::{self, CredentialRefused, EXEC_INFO, PluginCredential},
};

/// How long a command may wait for others and run.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes that are read of an output.
const MAX_OUTPUT: u64 = 256 * 1024;

/// Why a command gave no credential. The texts go into a condition.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PluginFailure {
    /// It must use a terminal. The text is that of Kubernetes' clients.
    #[error(
        "credential plugin {name:?}: exec plugin cannot support interactive mode: standard input is not a terminal"
    )]
    NoTerminal {
        /// The name of the provider.
        name: String,
    },
    /// The command is not there.
    #[error("credential plugin {name:?}: {command:?} cannot be run: {error}{hint}")]
    NotStarted {
        /// The name of the provider.
        name: String,
        /// The command.
        command: String,
        /// What the system says.
        error: io::Error,
        /// The configured hint.
        hint: String,
    },
    /// It ended with a failure.
    #[error("credential plugin {name:?} failed: {status}")]
    Failed {
        /// The name of the provider.
        name: String,
        /// The exit code or signal.
        status: String,
    },
    /// It did not end.
    #[error("credential plugin {name:?} did not end within {PLUGIN_TIMEOUT:?}")]
    Hung {
        /// The name of the provider.
        name: String,
    },
    /// Its output is too long.
    #[error("credential plugin {name:?}: its output is longer than {MAX_OUTPUT} bytes")]
    TooLong {
        /// The name of the provider.
        name: String,
    },
    /// Its output is of no use.
    #[error("credential plugin {name:?}: {refused}")]
    Refused {
        /// The name of the provider.
        name: String,
        /// Why.
        refused: CredentialRefused,
    },
}

/// Asks the provider for a credential.
///
/// # Errors
/// If there is none.
pub(crate) async fn run(
    access: &ProfileAccess<'_>,
    permits: Option<&Semaphore>,
) -> Result<PluginCredential, PluginFailure> {
    let name = access.provider.name.clone();
    if access.provider.exec_config.interactive_mode == ALWAYS_INTERACTIVE {
        return Err(PluginFailure::NoTerminal { name });
    }
    let output = async {
        // A permit for each run: 500 workers may be registered at once. The semaphore is never closed.
        let _permit = match permits {
            Some(permits) => permits.acquire().await.ok(),
            None => None,
        };
        output(access).await
    };
    let hung = |_| PluginFailure::Hung { name: name.clone() };
    let output = time::timeout(PLUGIN_TIMEOUT, output).await.map_err(hung)??;
    exec_credential::read(&output, access.provider)
        .map_err(|refused| PluginFailure::Refused { name, refused })
}

async fn output(access: &ProfileAccess<'_>) -> Result<Vec<u8>, PluginFailure> {
    let AccessProvider { name, exec_config } = access.provider;
    let not_started = |error| PluginFailure::NotStarted {
        name: name.clone(),
        command: exec_config.command.clone(),
        error,
        hint: hint(&exec_config.install_hint),
    };
    let mut child = Command::new(&exec_config.command)
        .args(&exec_config.args)
        .envs(exec_config.env.iter().map(|one| (&one.name, &one.value)))
        .env(EXEC_INFO, exec_credential::request(access))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // A command that hangs ends with the future that waits for it.
        .kill_on_drop(true)
        .spawn()
        .map_err(not_started)?;
    let output = match child.stdout.take() {
        Some(stdout) => bounded(stdout).await.map_err(not_started)?,
        None => Vec::new(),
    };
    if output.len() as u64 > MAX_OUTPUT {
        return Err(PluginFailure::TooLong { name: name.clone() });
    }
    let status = child.wait().await.map_err(not_started)?;
    if status.success() {
        Ok(output)
    } else {
        Err(PluginFailure::Failed { name: name.clone(), status: status.to_string() })
    }
}

async fn bounded(output: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    output.take(MAX_OUTPUT + 1).read_to_end(&mut read).await?;
    Ok(read)
}

fn hint(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("; {text}") }
}

#[cfg(test)]
mod tests {
    use config::ExecConfig;
    use serde_json::{Value, json};

    use super::*;

    fn shell(script: &str) -> AccessProvider {
        let exec_config = ExecConfig {
            command: "/bin/sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            api_version: "client.authentication.k8s.io/v1".to_owned(),
            provide_cluster_info: true,
            install_hint: "install it".to_owned(),
            ..ExecConfig::default()
        };
        AccessProvider { name: "a".to_owned(), exec_config }
    }

    async fn outcome(provider: &AccessProvider, cluster: &Value) -> Result<String, String> {
        let access = ProfileAccess { provider, cluster };
        let credential = run(&access, None).await.map_err(|error| error.to_string())?;
        Ok(credential.kubeconfig(&access))
    }

    #[tokio::test]
    async fn a_command_sees_the_cluster_and_its_output_is_the_credential() {
        // The token is what the command was given, in a form that fits into JSON.
        let script = r#"given=$(printf %s "$KUBERNETES_EXEC_INFO" | tr -d '"')
            printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}' "$given""#;
        let text = outcome(&shell(script), &json!({ "server": "https://east" }))
            .await
            .expect("a credential");
        assert!(text.contains("cluster:{server:https://east}"), "{text}");
    }

    /// A manager has no terminal.
    #[tokio::test]
    async fn a_command_that_needs_a_terminal_is_not_run() {
        let mut provider = shell("exit 3");
        for mode in ["", "Never", "IfAvailable"] {
            provider.exec_config.interactive_mode = mode.to_owned();
            let error = outcome(&provider, &json!({})).await.expect_err("it fails");
            assert_eq!(error, "credential plugin \"a\" failed: exit status: 3", "{mode}");
        }
        provider.exec_config.interactive_mode = "Always".to_owned();
        let error = outcome(&provider, &json!({})).await.expect_err("no terminal");
        assert_eq!(
            error,
            "credential plugin \"a\": exec plugin cannot support interactive mode: standard input is not a terminal"
        );
    }

    #[tokio::test]
    async fn a_command_without_a_credential_says_why_and_nothing_of_its_output() {
        let cluster = json!({});
        let missing = AccessProvider {
            exec_config: ExecConfig {
                command: "/nowhere/plugin".to_owned(),
                ..shell("").exec_config
            },
            ..shell("")
        };
        let long = format!("head -c {} /dev/zero", MAX_OUTPUT + 10);
        for (provider, expected) in [
            (shell("echo hush; exit 3"), "credential plugin \"a\" failed: exit status: 3"),
            (shell("echo hush"), "credential plugin \"a\": its output is no ExecCredential"),
            (shell(&long), "credential plugin \"a\": its output is longer than 262144 bytes"),
            (
                missing,
                "credential plugin \"a\": \"/nowhere/plugin\" cannot be run: No such file or directory (os error 2); install it",
            ),
        ] {
            assert_eq!(outcome(&provider, &cluster).await.expect_err("no credential"), expected);
        }
    }
}
