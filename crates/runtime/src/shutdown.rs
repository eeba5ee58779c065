//! The stop token, cancelled by SIGTERM or SIGINT. SIGUSR2, which asks a leader for a dump of its state, ends no process.

use tokio::signal::unix::{SignalKind, signal};
pub use tokio_util::sync::CancellationToken as Stop;

/// A token that SIGTERM and SIGINT cancel. Call it once, within the async runtime.
///
/// # Errors
/// If the signal handlers cannot be installed.
pub fn on_signal() -> std::io::Result<Stop> {
    let stop = Stop::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Its default would end a replica that does not lead, and so does not listen.
    drop(signal(SignalKind::user_defined2())?);
    let token = stop.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping");
        token.cancel();
    });
    Ok(stop)
}
