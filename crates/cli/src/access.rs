//! Kubeconfigs of administrators, and clients out of them.

use std::path::Path;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// Why a cluster cannot be used. No message contains a value of the kubeconfig other than names.
#[derive(Debug, thiserror::Error)]
pub enum AccessFailure {
    /// The kubeconfig cannot be read.
    #[error("cannot read the kubeconfig {file}: {reason}")]
    Kubeconfig {
        /// The file, or what names it.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The kubeconfig has no such context.
    #[error("the kubeconfig {file} has no context {context:?}")]
    NoContext {
        /// The file, or what names it.
        file: String,
        /// The requested context.
        context: String,
    },
    /// The client could not be made.
    #[error("cannot use context {context:?} of the kubeconfig {file}: {reason}")]
    Client {
        /// The file, or what names it.
        file: String,
        /// The context.
        context: String,
        /// What is wrong.
        reason: String,
    },
}

/// A cluster as the caller reaches it.
#[derive(Clone)]
pub struct ClusterAccess {
    /// A client with the rights of the caller.
    pub client: Client,
    /// The kubeconfig; paths in it are absolute.
    pub kubeconfig: Kubeconfig,
    /// The context of the client.
    pub context: String,
}

impl ClusterAccess {
    /// From a file, or the one that kubectl would use: `KUBECONFIG`, else `~/.kube/config`.
    ///
    /// # Errors
    /// If the file cannot be read, lacks the context or is invalid.
    pub async fn load(path: Option<&Path>, context: Option<&str>) -> Result<Self, AccessFailure> {
        let file = path.map_or("of KUBECONFIG or ~/.kube/config".to_owned(), |path| {
            path.display().to_string()
        });
        let read = path.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
        let kubeconfig = read.map_err(|error| AccessFailure::Kubeconfig {
            file: file.clone(),
            reason: reason(&error),
        })?;
        Self::of(kubeconfig, context, file).await
    }

    /// From a kubeconfig that was read from `file`.
    ///
    /// # Errors
    /// If it lacks the context or is invalid.
    pub async fn of(
        kubeconfig: Kubeconfig,
        context: Option<&str>,
        file: String,
    ) -> Result<Self, AccessFailure> {
        let context = context.map(str::to_owned).or_else(|| kubeconfig.current_context.clone());
        let context = context.unwrap_or_default();
        if !kubeconfig.contexts.iter().any(|one| one.name == context) {
            return Err(AccessFailure::NoContext { file, context });
        }
        let options =
            KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options)
            .await
            .map_err(|error| (file.clone(), context.clone(), reason(&error)));
        let client = config.and_then(|config| {
            // A server that accepts connections and does not answer would hold the command for ever.
            let made = remote::with_deadlines(config);
            made.map_err(|error| (file, context.clone(), runtime::error_chain::describe(&error)))
        });
        let client = client.map_err(|(file, context, reason)| AccessFailure::Client {
            file,
            context,
            reason,
        })?;
        Ok(Self { client, kubeconfig, context })
    }

    /// The namespace of the context.
    #[must_use]
    pub fn namespace(&self) -> String {
        let context = self.kubeconfig.contexts.iter().find(|one| one.name == self.context);
        let namespace = context.and_then(|one| one.context.as_ref()?.namespace.clone());
        namespace.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned())
    }
}

fn reason(error: &KubeconfigError) -> String {
    match error {
        // The text of a decoder may repeat lines of the file, and so a token.
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!("not a kubeconfig, line {}, column {}", at.line(), at.column()),
            None => "not a kubeconfig".to_owned(),
        },
        other => runtime::error_chain::describe(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_kubeconfig_is_refused_without_its_text() {
        let error = Kubeconfig::from_yaml("users:\n- user: {token: s3cret\n").expect_err("broken");
        let reason = reason(&error);
        assert!(reason.starts_with("not a kubeconfig") && !reason.contains("s3cret"), "{reason}");
    }
}
