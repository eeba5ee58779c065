//! A recorded case, as in its file.

use std::{collections::BTreeMap, fs::File, io::Read, path::Path};

use anyhow::Context;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

use crate::traces::TraceCase;

/// One request and the answer that was recorded.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// `kind/version/group/name`, unique.
    pub id: String,
    /// The kind that the case is about.
    pub kind: String,
    /// The settings of the manager that the answer holds for.
    pub config: Config,
    /// Namespace to create first.
    pub namespace: Option<String>,
    /// Labels of the namespace.
    #[serde(default)]
    pub namespace_labels: BTreeMap<String, String>,
    /// Requests to send first, in order.
    #[serde(default)]
    pub setup: Vec<CaseRequest>,
    /// How long webhooks' caches need to see the setup.
    #[serde(default)]
    pub pause_ms: u64,
    /// Uses a fixed cluster-wide name: runs alone.
    #[serde(default)]
    pub exclusive: bool,
    /// The request.
    pub request: CaseRequest,
    /// The answer.
    pub expect: ExpectedResponse,
}

/// Settings of the manager.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// The default configuration.
    Base,
    /// Jobs without a queue name managed; some gates on.
    #[serde(rename = "variant-1")]
    Variant1,
    /// Only labelled namespaces managed; many gates off.
    #[serde(rename = "variant-2")]
    Variant2,
}

/// One HTTP request.
#[derive(Clone, Debug, Deserialize)]
pub struct CaseRequest {
    /// The verb.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// `Content-Type`.
    pub content_type: String,
    /// `Accept`.
    pub accept: Option<String>,
    /// The body.
    pub body: Option<Value>,
    /// Read the object first and put its resourceVersion into the body.
    #[serde(default)]
    pub fill_resource_version: bool,
}

impl CaseRequest {
    /// The path without query and subresource, for reading the object back.
    pub fn object_path(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        path.strip_suffix("/status").or_else(|| path.strip_suffix("/scale")).unwrap_or(path)
    }
}

/// The answer that was recorded.
#[derive(Clone, Debug, Deserialize)]
pub struct ExpectedResponse {
    /// HTTP status.
    pub code: u16,
    /// The body of an accepted request.
    pub response: Option<Value>,
    /// The object read back, by version.
    #[serde(default)]
    pub stored: BTreeMap<String, Value>,
    /// Reason of a refusal.
    pub reason: Option<String>,
    /// Text of a refusal.
    pub message: Option<String>,
    /// The single errors of a refusal.
    #[serde(default)]
    pub causes: Vec<Value>,
    /// `Warning` headers.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The recorded answer is a server error: any refusal is right.
    #[serde(default)]
    pub do_not_copy: bool,
}

/// Cases of all formats.
#[derive(Clone, Debug, Default)]
pub struct RecordedCases {
    /// Single requests with their answers.
    pub answers: Vec<Case>,
    /// Lives of jobs.
    pub traces: Vec<TraceCase>,
    /// What the official operators of Ray and AppWrapper did.
    pub operators: Vec<Value>,
}

/// Adds the cases of a file, one a line; `.gz` is unpacked. A line with `case` is of a trace, one with `name` and
/// `profile` of an operator, others are of single requests.
///
/// # Errors
/// If the file cannot be read or a line is not a case.
pub fn load(path: &Path, recording: &mut RecordedCases) -> anyhow::Result<()> {
    let text = read(path).with_context(|| format!("reading {}", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (at, line) in lines {
        let not_a_case = || format!("{}:{}: not a case", path.display(), at + 1);
        let value: Value = serde_json::from_str(line).with_context(not_a_case)?;
        if operator_replay::is_case(&value) {
            recording.operators.push(value);
        } else if value.get("case").is_some() {
            recording.traces.push(serde_json::from_value(value).with_context(not_a_case)?);
        } else {
            recording.answers.push(serde_json::from_value(value).with_context(not_a_case)?);
        }
    }
    Ok(())
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let mut file = File::open(path)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    Ok(text)
}
