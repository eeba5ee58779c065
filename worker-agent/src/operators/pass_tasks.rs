//! The passes in progress, a task each.

use std::{collections::HashMap, future::Future};

use tokio::task::{Id, JoinSet};

use super::parent::ParentId;

/// The passes in progress, a task each.
pub(super) struct PassTasks<T> {
    tasks: JoinSet<T>,
    objects: HashMap<Id, ParentId>,
}

/// How a pass ended.
#[derive(Debug, PartialEq)]
pub(super) enum PassTaskEnd<T> {
    /// It reported.
    Report(T),
    /// It panicked. What it had done is not known.
    Panicked(ParentId),
}

impl<T: Send + 'static> PassTasks<T> {
    pub(super) fn new() -> Self {
        Self { tasks: JoinSet::new(), objects: HashMap::new() }
    }

    /// Starts a pass about an object.
    pub(super) fn spawn(&mut self, id: ParentId, pass: impl Future<Output = T> + Send + 'static) {
        let task = self.tasks.spawn(pass);
        self.objects.insert(task.id(), id);
    }

    /// Waits for the next pass that ends; `None` while there is none.
    pub(super) async fn next(&mut self) -> Option<PassTaskEnd<T>> {
        loop {
            match self.tasks.join_next_with_id().await? {
                Ok((task, report)) => {
                    self.objects.remove(&task);
                    return Some(PassTaskEnd::Report(report));
                }
                // The object of a panic must not keep the operators from all others.
                Err(error) => {
                    if let Some(id) = self.objects.remove(&error.id()) {
                        tracing::error!(object = %id, %error, "a pass failed");
                        return Some(PassTaskEnd::Panicked(id));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use runtime::watch::Key;

    use super::*;
    use crate::operators::parent::ParentKind;

    #[tokio::test]
    async fn a_pass_that_panics_ends_alone() {
        let id = |name: &str| ParentId {
            kind: ParentKind::RayCluster,
            key: Key { namespace: Some("ns".into()), name: name.into() },
        };
        let mut tasks = PassTasks::new();
        assert_eq!(tasks.next().await, None);
        tasks.spawn(id("broken"), async { panic!("a fault of a decision") });
        assert_eq!(tasks.next().await, Some(PassTaskEnd::Panicked(id("broken"))));
        tasks.spawn(id("sound"), async { 7 });
        assert_eq!(tasks.next().await, Some(PassTaskEnd::Report(7)));
        assert_eq!(tasks.next().await, None);
    }
}
