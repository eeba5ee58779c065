//! One cluster with Kueue: [`control`] is the state machine that queues, admits and dispatches Workloads.

pub mod control;
