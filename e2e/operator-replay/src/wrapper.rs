//! Cases of the controller of AppWrappers.

pub(crate) mod compare;
mod pods;
mod profile;
mod ray_objects;
#[cfg(test)]
mod ray_objects_tests;
#[cfg(test)]
mod takeover_tests;
#[cfg(test)]
mod tests;
pub(crate) mod webhook;
mod world;
