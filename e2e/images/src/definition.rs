//! Which images there are, and for which machines.

use anyhow::Context;

/// An image and the program that it holds. Both have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageDefinition {
    /// The package of the program.
    pub package: &'static str,
    /// The name of the program and of the image.
    pub program: &'static str,
    /// What the program does.
    pub title: &'static str,
    /// The program may not be larger than this.
    pub most_bytes: usize,
}

/// All images.
pub const IMAGES: [ImageDefinition; 2] = [
    ImageDefinition {
        package: "manager",
        program: "sluice-manager",
        title: "Sluice manager",
        most_bytes: 27_000_000,
    },
    ImageDefinition {
        package: "worker-agent",
        program: "sluice-agent",
        title: "Sluice agent",
        most_bytes: 20_000_000,
    },
];

impl ImageDefinition {
    /// This image without a limit of its size: only published images have one.
    #[must_use]
    pub fn of_any_size(self) -> Self {
        Self { most_bytes: usize::MAX, ..self }
    }
}

/// The definition of the image with this name.
///
/// # Errors
/// If there is none.
pub fn named(program: &str) -> anyhow::Result<ImageDefinition> {
    let found = IMAGES.into_iter().find(|image| image.program == program);
    found.with_context(|| {
        let names = IMAGES.map(|image| image.program).join(", ");
        format!("no image is named {program:?}; there are {names}")
    })
}

/// The machine that an image is for, in the names of cargo and of container engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImagePlatform {
    /// Cargo's target.
    pub triple: &'static str,
    /// The architecture in the configuration of the image.
    pub architecture: &'static str,
}

impl ImagePlatform {
    /// The platform of this machine.
    ///
    /// # Errors
    /// If programs of this machine's architecture cannot be linked statically here.
    pub fn of_this_machine() -> anyhow::Result<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self { triple: "x86_64-unknown-linux-gnu", architecture: "amd64" }),
            "aarch64" => Ok(Self { triple: "aarch64-unknown-linux-gnu", architecture: "arm64" }),
            other => anyhow::bail!("images for {other} are not supported"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        assert_eq!(named("sluice-agent").expect("the agent").package, "worker-agent");
        let error = named("sluice").expect_err("no image").to_string();
        assert_eq!(error, r#"no image is named "sluice"; there are sluice-manager, sluice-agent"#);
    }
}
