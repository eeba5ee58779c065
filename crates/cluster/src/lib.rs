//! Kueue in one cluster: configuration, feature gates, webhooks and what they know.

pub mod config;
pub mod control;
pub mod facts;
pub mod gates;
pub mod webhooks;
