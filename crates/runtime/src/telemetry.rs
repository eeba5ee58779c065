//! Logs: `tracing` to standard error, as text or as JSON lines.

use std::io::IsTerminal;

use tracing_subscriber::{
    Layer, Registry,
    filter::{ParseError, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// The default filter. The client logs whole bodies at `warn` if they do not parse, and a body may be a Secret.
const DEFAULT_FILTER: &str = "kube_client=error,hyper=warn,rustls=warn";

/// The format of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Plain text.
    #[default]
    Text,
    /// JSON objects.
    Json,
}

/// Why logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is invalid.
    #[error("cannot read the log filter {filter:?}: {source}")]
    Filter {
        /// The filter.
        filter: String,
        /// What is wrong.
        source: ParseError,
    },
    /// Logs are set up already.
    #[error("logs are set up already: {0}")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// The given filter after the default one.
fn filter(level: &str) -> Result<Targets, TelemetryError> {
    // The later directive for a target counts, so `level` may replace a default.
    let filter = format!("{DEFAULT_FILTER},{level}");
    filter.parse().map_err(|source| TelemetryError::Filter { filter, source })
}

/// Starts logging. `level` is a level or a list of `target=level`.
///
/// # Errors
/// If the filter is invalid, or logs are set up already.
pub fn init(format: LogFormat, level: &str) -> Result<(), TelemetryError> {
    let lines = fmt::layer::<Registry>()
        .with_writer(std::io::stderr)
        // Collected logs would keep the escape codes.
        .with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter(level)?)).try_init()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_not_logged_by_default() {
        let rendered = filter("info").expect("a filter").to_string();
        assert!(rendered.contains("kube_client=error"), "{rendered}");
        let rendered = filter("info,kube_client=debug").expect("a filter").to_string();
        assert!(rendered.contains("kube_client=debug"), "{rendered}");
        assert!(!rendered.contains("kube_client=error"), "{rendered}");
    }

    #[test]
    fn an_invalid_filter_is_refused() {
        let error = filter("manager=loud").expect_err("no such level").to_string();
        assert!(error.starts_with("cannot read the log filter"), "{error}");
    }
}
