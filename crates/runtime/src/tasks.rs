//! Supervision of the tasks of a process.

use tokio::task::{JoinError, JoinSet};

use crate::Stop;

/// Why a process ended without a stop.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// A task failed.
    #[error("a task failed: {0}")]
    Failed(#[from] JoinError),
    /// A task ended before the stop.
    #[error("a task ended early")]
    Early,
}

/// Waits for all tasks. The first task that ends stops the others; that is an error unless `stop` was cancelled before.
///
/// # Errors
/// If a task failed, or ended before the stop.
pub async fn supervise(mut tasks: JoinSet<()>, stop: Stop) -> Result<(), TaskError> {
    let mut outcome = Ok(());
    while let Some(ended) = tasks.join_next().await {
        // A panic is an error also after the stop; an end is one only before it.
        if let Err(error) = ended {
            outcome = Err(error.into());
        } else if !stop.is_cancelled() {
            outcome = Err(TaskError::Early);
        }
        stop.cancel();
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_early_ends_the_process() {
        let stop = Stop::new();
        let mut tasks = JoinSet::new();
        let token = stop.clone();
        tasks.spawn(async move { token.cancelled().await });
        tasks.spawn(async {});
        let error = supervise(tasks, stop.clone()).await.expect_err("early").to_string();
        assert_eq!(error, "a task ended early");
        assert!(stop.is_cancelled());
    }

    #[tokio::test]
    async fn a_stop_is_no_error() {
        let stop = Stop::new();
        let mut tasks = JoinSet::new();
        let token = stop.clone();
        tasks.spawn(async move { token.cancelled().await });
        stop.cancel();
        assert!(supervise(tasks, stop).await.is_ok());
    }
}
