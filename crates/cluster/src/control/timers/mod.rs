//! Timers: what is evaluated now, later, and at the limits of Workloads.

mod agenda;
mod deadlines;

pub use self::agenda::Reevaluation;
pub(crate) use self::{
    agenda::{Agenda, NamesToEvaluate},
    deadlines::Deadlines,
};
