//! Changes of objects that others change at the same time.

use std::future::Future;

/// Attempts at one change.
const ATTEMPTS: usize = 5;

/// Makes a change, and makes it again after a conflict: `change` reads the object each time. `is_conflict` says whether the object was
/// changed between read and write. The last conflict is the failure.
pub(crate) async fn retry_conflicts<T, F, C: Future<Output = Result<T, F>>>(
    mut change: impl FnMut() -> C,
    is_conflict: impl Fn(&F) -> bool,
) -> Result<T, F> {
    for _ in 1..ATTEMPTS {
        match change().await {
            Err(failure) if is_conflict(&failure) => {}
            outcome => return outcome,
        }
    }
    change().await
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FailedChange(bool);

    /// What a change ends with that is answered with these outcomes in turn, then well, and the attempts that were made.
    async fn attempts(refusals: &[bool]) -> (bool, usize) {
        let mut n = 0;
        let change = || {
            n += 1;
            let refused = refusals.get(n - 1).map(|conflict| FailedChange(*conflict));
            async move { refused.map_or(Ok(()), Err) }
        };
        let ended = retry_conflicts(change, |failed| failed.0);
        let ended = ended.await;
        (ended.is_ok(), n)
    }

    #[tokio::test]
    async fn only_conflicts_are_retried_and_not_for_ever() {
        assert_eq!(attempts(&[]).await, (true, 1));
        assert_eq!(attempts(&[true, true]).await, (true, 3));
        assert_eq!(attempts(&[true, false]).await, (false, 2));
        assert_eq!(attempts(&[true; 4]).await, (true, 5));
        assert_eq!(attempts(&[true; 9]).await, (false, 5));
    }
}
