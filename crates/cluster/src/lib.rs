//! Kueue in one cluster: configuration, feature gates, webhooks and what they know, and the one place that decides.

pub mod config;
pub mod control;
pub mod facts;
pub mod gates;
pub mod led;
pub mod webhooks;
