//! Logs: `tracing` to standard error, as text or as JSON lines.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt, util::SubscriberInitExt};

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
        source: tracing_subscriber::filter::ParseError,
    },
    /// Logs are set up already.
    #[error("logs are set up already: {0}")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// The given filter after the default one.
fn filter(level: &str) -> Result<EnvFilter, TelemetryError> {
    let filter = format!("{DEFAULT_FILTER},{level}");
    EnvFilter::try_new(&filter).map_err(|source| TelemetryError::Filter { filter, source })
}

/// Starts logging. `level` is a level or a list of `target=level`.
///
/// # Errors
/// If the filter is invalid, or logs are set up already.
pub fn init(format: LogFormat, level: &str) -> Result<(), TelemetryError> {
    let builder = fmt()
        .with_env_filter(filter(level)?)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => builder.finish().try_init()?,
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init()?,
    }
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
