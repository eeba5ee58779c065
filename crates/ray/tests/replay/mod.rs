//! Replay of recorded cases: a small cluster in memory takes the place of the API server, the kubelets and the garbage collector.

pub(crate) mod cases;
pub(crate) mod compare;
pub(crate) mod head;
pub(crate) mod jobs;
pub(crate) mod normal;
pub(crate) mod world;
