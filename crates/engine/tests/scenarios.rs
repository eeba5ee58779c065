//! Scenarios: one rule each, told in a small text language. See `play/mod.rs` for the language.

mod play;

#[path = "scenarios/backoff.rs"]
mod backoff;
#[path = "scenarios/balance.rs"]
mod balance;
#[path = "scenarios/borrowing.rs"]
mod borrowing;
#[path = "scenarios/charging.rs"]
mod charging;
#[path = "scenarios/check.rs"]
mod check;
#[path = "scenarios/checks.rs"]
mod checks;
#[path = "scenarios/choosing.rs"]
mod choosing;
#[path = "scenarios/explaining.rs"]
mod explaining;
#[path = "scenarios/fungibility.rs"]
mod flavor_fungibility;
#[path = "scenarios/gates.rs"]
mod gates;
#[path = "scenarios/groups.rs"]
mod groups;
#[path = "scenarios/growing.rs"]
mod growing;
#[path = "scenarios/holding.rs"]
mod holding;
#[path = "scenarios/inactive.rs"]
mod inactive;
#[path = "scenarios/layers.rs"]
mod layers;
#[path = "scenarios/machines.rs"]
mod machines;
#[path = "scenarios/missing_places.rs"]
mod missing_places;
#[path = "scenarios/namespaces.rs"]
mod namespaces;
#[path = "scenarios/order.rs"]
mod order;
#[path = "scenarios/parking.rs"]
mod parking;
#[path = "scenarios/placing.rs"]
mod placing;
#[path = "scenarios/preempting.rs"]
mod preempting;
#[path = "scenarios/preferring.rs"]
mod preferring;
#[path = "scenarios/real_pods.rs"]
mod real_pods;
#[path = "scenarios/reclaiming.rs"]
mod reclaiming;
#[path = "scenarios/replacing.rs"]
mod replacing;
#[path = "scenarios/reserving.rs"]
mod reserving;
#[path = "scenarios/reshaping.rs"]
mod reshaping;
#[path = "scenarios/second_pass.rs"]
mod second_pass;
#[path = "scenarios/sharing.rs"]
mod sharing;
#[path = "scenarios/shrinking.rs"]
mod shrinking;
#[path = "scenarios/slices.rs"]
mod slices;
#[path = "scenarios/stopping.rs"]
mod stopping;
#[path = "scenarios/strict.rs"]
mod strict;
#[path = "scenarios/supposing.rs"]
mod supposing;
#[path = "scenarios/topology.rs"]
mod topology;
#[path = "scenarios/tournament.rs"]
mod tournament;
#[path = "scenarios/turns.rs"]
mod turns;
#[path = "scenarios/uncountable.rs"]
mod uncountable;
#[path = "scenarios/usage_sharing.rs"]
mod usage_sharing;
#[path = "scenarios/variants.rs"]
mod variants;
#[path = "scenarios/waking.rs"]
mod waking;
#[path = "scenarios/why.rs"]
mod why;
