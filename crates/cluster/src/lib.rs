//! Kueue in one cluster: configuration, feature gates, webhooks.

pub mod config;
pub mod gates;
pub mod webhooks;
