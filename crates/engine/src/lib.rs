//! The scheduling core: Kueue's semantics as a pure function of events.
//!
//! [`Engine::apply`] keeps the books and marks whom a change may help; [`Engine::cycle`] is one scheduling cycle and
//! returns what was decided about the head of every queue. There is no IO, no clock and no hash order in an outcome: the
//! same events give the same decisions. Source: docs/reference/kueue.md §3-4.
//!
//! What-if is done on the live state: changes of usage are journalled and rewound, nothing is copied.

mod admission_sharing;
mod amount;
mod apply;
mod backoff;
mod books;
mod checks;
mod cycle;
mod engine;
mod event;
pub mod explain;
mod failures;
pub mod flavors;
pub mod ids;
mod names;
mod pending;
mod placer;
mod preemption;
mod queues;
mod quota;
mod reason;
mod second_pass;
mod settings;
mod shape;
mod slices;
pub mod spec;
mod state;
mod time;
pub mod topology;
mod undo;
mod variants;
mod view;
mod what_if;
mod workload;

pub use crate::admission_sharing::{UsageShare, UsageSharing};
pub use crate::amount::Amount;
pub use crate::backoff::{Backoff, Requeuing};
pub use crate::cycle::{Entry, Outcome, Requeue};
pub use crate::engine::{Engine, Ongoing};
pub use crate::event::Event;
pub use crate::flavors::assign::{Assignment, Choice, Mode, PodSetAssignment};
pub use crate::names::{Interner, Names};
pub use crate::placer::{Anywhere, Placer, WakeKey};
pub use crate::preemption::Target;
pub use crate::reason::{Obstacle, PreemptionReason, Reason};
pub use crate::second_pass::SecondPass;
pub use crate::settings::{FairStrategy, Settings};
pub use crate::time::Time;
pub use crate::view::Placement;
pub use crate::what_if::WhatIf;
