//! Replay of recorded cases: a small cluster in memory takes the place of the API server, other controllers and the kubelets.

pub(crate) mod cases;
pub(crate) mod compare;
#[path = "../../../ray/tests/replay/normal.rs"]
pub(crate) mod normal;
pub(crate) mod pods;
pub(crate) mod world;
