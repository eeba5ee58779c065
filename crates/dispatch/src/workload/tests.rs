//! Each rule once, as lines of a small [`language`]: the hub, one line per cluster, the steps.

mod adoption;
mod assigned;
mod changed_clones;
mod disputes;
mod exactly_once;
mod groups;
mod language;
mod moved;
mod nomination;
mod preemption_gates;
mod pushes;
mod reconcile_group;
mod simulation;
mod slices;
mod withdrawal;

use self::language::{SETTINGS, check, copy, hub, in_words};
use super::*;
