//! `sluicectl` as a program: registration, reports, explanation, drain and the end of a registration on real control planes.

mod fixture;
mod lasting_installation;
mod logs;
mod played_kubelet;
mod registration;

use e2e::objects;
