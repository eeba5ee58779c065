//! Kueue in one cluster.

pub mod webhooks;
