//! Kueue in one cluster: configuration, feature gates, webhooks and what they know, and the one place that decides.

pub mod config;
pub mod control;
pub mod gates;
pub mod leader;
pub mod webhook_cache;
pub mod webhooks;
