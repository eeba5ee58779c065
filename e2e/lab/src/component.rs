//! The programs a cluster consists of, and the tools beside them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One long-running process of a cluster. The order is the order of starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// The store.
    Etcd,
    /// The API server.
    #[serde(rename = "kube-apiserver")]
    ApiServer,
    /// Kubernetes' own controllers.
    #[serde(rename = "kube-controller-manager")]
    ControllerManager,
    /// The pod scheduler.
    #[serde(rename = "kube-scheduler")]
    Scheduler,
    /// Plays the kubelets.
    Kwok,
}

/// A name that is none of the components.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "no component is called {0:?}; there are etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok"
)]
pub struct UnknownComponent(String);

impl Component {
    /// All of them, in the order of starting.
    pub const ALL: [Self; 5] =
        [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kwok];

    /// The name of its program, which is also the name of its log.
    pub fn program(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

impl FromStr for Component {
    type Err = UnknownComponent;

    /// Accepts the program's name with or without `kube-`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|component| {
                let program = component.program();
                name == program || Some(name) == program.strip_prefix("kube-")
            })
            .ok_or_else(|| UnknownComponent(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_with_and_without_the_prefix() {
        assert_eq!("apiserver".parse(), Ok(Component::ApiServer));
        assert_eq!("kube-apiserver".parse(), Ok(Component::ApiServer));
        assert_eq!("kwok".parse(), Ok(Component::Kwok));
        assert_eq!("kubelet".parse::<Component>(), Err(UnknownComponent("kubelet".into())));
    }
}
