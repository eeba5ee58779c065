//! The Helm chart, rendered and installed by Helm, and overlays over the kustomizations.
//!
//! | module | what is tested |
//! |---|---|
//! | `helm` | runs Helm on the chart |
//! | `manifests` | with its defaults the chart is the kustomization |
//! | `overlay` | an overlay over the kustomizations names other images |
//! | `values` | each value lands where it should |
//! | `refused` | values that cannot be served are refused with a reason |
//! | `rendered` | a manager with what is rendered: configuration, flags, rights, names |
//! | `release` | install, upgrade and uninstall by Helm itself |

mod helm;
mod manifests;
mod overlay;
mod refused;
mod release;
mod rendered;
mod values;
