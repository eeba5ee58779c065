//! Requests to clusters, of which equal ones are kept once.
//!
//! The Workloads of a queue have few different requests, and one takes half a kilobyte in eight pieces.

use std::{collections::HashSet, sync::Arc};

use dispatch::WorkloadRequest;

/// The number of requests below which unused ones are kept.
const MIN_PRUNE: usize = 64;

/// The known requests.
#[derive(Debug, Default)]
pub(crate) struct SharedRequests {
    known: HashSet<Arc<WorkloadRequest>>,
    /// The number of requests at which unused ones are removed next: twice those that were left, so that a request costs a constant.
    prune_at: usize,
}

impl SharedRequests {
    /// The known request that equals this one, else this one.
    pub(crate) fn share(&mut self, request: WorkloadRequest) -> Arc<WorkloadRequest> {
        if let Some(known) = self.known.get(&request) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.prune_at.max(MIN_PRUNE) {
            self.known.retain(|one| Arc::strong_count(one) > 1);
            self.prune_at = self.known.len() * 2;
        }
        let request = Arc::new(request);
        self.known.insert(Arc::clone(&request));
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(namespace: usize) -> WorkloadRequest {
        WorkloadRequest { namespace: namespace.to_string().into(), ..WorkloadRequest::default() }
    }

    #[test]
    fn equal_requests_are_one() {
        let mut requests = SharedRequests::default();
        let [one, other, third] = [1, 1, 2].map(|namespace| requests.share(of(namespace)));
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!((&*one, &*third), (&of(1), &of(2)));
    }

    #[test]
    fn unused_requests_are_removed() {
        let mut requests = SharedRequests::default();
        let used = requests.share(of(0));
        for namespace in 1..1000 {
            requests.share(of(namespace));
            assert!(requests.known.len() <= MIN_PRUNE);
        }
        assert!(Arc::ptr_eq(&used, &requests.share(of(0))));
    }
}
