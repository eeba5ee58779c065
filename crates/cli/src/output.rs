//! Formats of a model: tables for people, JSON and YAML for programs.

use serde::Serialize;

/// How a command prints what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Columns.
    #[default]
    Table,
    /// More columns.
    Wide,
    /// One JSON value.
    Json,
    /// One YAML document.
    Yaml,
}

/// A model with a text for people.
///
/// Contract: the text ends with a line break. [`render`] prints it unless a program asked for JSON or YAML.
///
/// ```ignore
/// impl HumanText for FencedWorker {
///     fn text(&self, wide: bool) -> String {
///         let session = if wide { format!(" (session {})", self.session) } else { String::new() };
///         format!("worker {} is fenced{session}\n", self.name)
///     }
/// }
/// ```
pub trait HumanText {
    /// The text; `wide` adds columns.
    fn text(&self, wide: bool) -> String;
}

/// Why a model was not rendered.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the result as {format}: {reason}")]
pub struct RenderFailure {
    format: &'static str,
    reason: String,
}

/// The text of a model in a format, with a line break at its end.
///
/// # Errors
/// If the encoder refuses the model.
pub fn render<M: Serialize + HumanText>(
    model: &M,
    format: OutputFormat,
) -> Result<String, RenderFailure> {
    let failed = |format, reason| RenderFailure { format, reason };
    match format {
        OutputFormat::Table => Ok(model.text(false)),
        OutputFormat::Wide => Ok(model.text(true)),
        OutputFormat::Json => serde_json::to_string_pretty(model)
            .map(|text| text + "\n")
            .map_err(|error| failed("JSON", error.to_string())),
        OutputFormat::Yaml => yaml(model),
    }
}

/// One YAML document.
///
/// # Errors
/// If the encoder refuses the value.
pub fn yaml<M: Serialize>(model: &M) -> Result<String, RenderFailure> {
    let text = serde_saphyr::to_string(model);
    text.map(|text| text.trim_end().to_owned() + "\n")
        .map_err(|error| RenderFailure { format: "YAML", reason: error.to_string() })
}
