//! What secures RayClusters: what is added to them, what is refused, and which objects are written (docs/reference/ray.md §14).

mod additions;
mod fixture;
mod former_ways;
mod objects;
mod openshift;
mod properties;
mod refusals;
