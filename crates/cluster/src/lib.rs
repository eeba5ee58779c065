//! One cluster with Kueue: the control loop of the leader, and its election.
//!
//! | module | concept |
//! |---|---|
//! | [`leader`] | leader election, and the tasks of the leader |
//! | [`control`] | the state machine that queues, admits and dispatches Workloads |

pub mod control;
pub mod leader;
