//! Logs: `tracing` to standard error, as text or as JSON lines.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt, util::SubscriberInitExt};

/// What is shown unless told otherwise. The client logs whole bodies at `warn` when they do not parse, and a body may
/// be a Secret.
const QUIET: &str = "kube_client=error,hyper=warn,rustls=warn";

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For machines.
    Json,
}

/// Why logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not one.
    #[error("cannot read the log filter {filter:?}: {source}")]
    Filter {
        /// The filter.
        filter: String,
        /// What is wrong.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Somebody was first.
    #[error("logs are set up already: {0}")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// The filter in effect: what is asked for, after what keeps libraries quiet.
fn filter(level: &str) -> Result<EnvFilter, TelemetryError> {
    let filter = format!("{QUIET},{level}");
    EnvFilter::try_new(&filter).map_err(|source| TelemetryError::Filter { filter, source })
}

/// Starts to log. `level` is a level or a list of `target=level`.
///
/// # Errors
/// If the level is not one, or logs are set up already.
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
    fn bodies_stay_out_of_the_logs_unless_asked_for() {
        let rendered = filter("info").expect("a filter").to_string();
        assert!(rendered.contains("kube_client=error"), "{rendered}");
        let rendered = filter("info,kube_client=debug").expect("a filter").to_string();
        assert!(rendered.contains("kube_client=debug"), "{rendered}");
        assert!(!rendered.contains("kube_client=error"), "{rendered}");
    }

    #[test]
    fn a_filter_that_is_none_is_refused() {
        let error = filter("manager=loud").expect_err("no such level").to_string();
        assert!(error.starts_with("cannot read the log filter"), "{error}");
    }
}
