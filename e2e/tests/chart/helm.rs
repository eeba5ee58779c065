//! Runs Helm on the chart, with a home of its own.

use std::{path::PathBuf, process::Output};

use anyhow::{Context, Result, ensure};
use e2e::{installation, local_webhooks};
use lab::binaries::module_program;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

/// The namespace of releases.
pub(crate) const NAMESPACE: &str = installation::NAMESPACE;

pub(crate) struct Helm {
    program: PathBuf,
    home: TempDir,
}

impl Helm {
    /// Helm, which is built when needed.
    pub(crate) fn find() -> Result<Self> {
        let program = module_program::helm(&|line| eprintln!("{line}"))?;
        Ok(Self { program, home: TempDir::new()? })
    }

    /// The chart.
    pub(crate) fn chart() -> String {
        installation::root().join("config/chart").display().to_string()
    }

    /// The output of a command.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.output(arguments).await?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "helm {}: {error}", arguments.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Renders the release `kueue` and returns the text. Each value is given by `--set`, as JSON if it is an object, a list or a text
    /// in quotes.
    pub(crate) async fn template(&self, values: &[&str], further: &[&str]) -> Result<String> {
        let chart = Self::chart();
        let mut arguments = vec!["template", "kueue", &chart, "--namespace", NAMESPACE];
        arguments.extend(values.iter().flat_map(|value| [flag(value), value]));
        arguments.extend(further);
        self.run(&arguments).await
    }

    /// The objects of one template.
    pub(crate) async fn objects(&self, template: &str, values: &[&str]) -> Result<Vec<Value>> {
        let path = format!("templates/{template}");
        local_webhooks::objects(&self.template(values, &["--show-only", &path]).await?)
    }

    /// What Helm says when it refuses values.
    pub(crate) async fn refusal(&self, values: &[&str]) -> Result<String> {
        let rendered = self.template(values, &[]).await;
        let error = rendered.err().with_context(|| format!("{values:?} are not refused"))?;
        Ok(error.to_string())
    }

    async fn output(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.program);
        for place in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(place, self.home.path());
        }
        command.env_remove("KUBECONFIG").args(arguments).output().await.context("helm")
    }
}

fn flag(value: &str) -> &'static str {
    let is_json =
        value.split_once('=').is_some_and(|(_, value)| value.starts_with(['{', '[', '"']));
    if is_json { "--set-json" } else { "--set" }
}
