//! A type that forwards a trait to what it wraps forwards every method that has a default.
//!
//! Such a method compiles without, and then answers by the default of the trait instead of by the wrapped value. A method may be
//! left out if its default asks the other methods only.

use crate::files::{self, TextFile};

/// A type that forwards a trait.
struct Delegate {
    interface: &'static str,
    forwarder: &'static str,
    /// Methods the defaults of which ask other methods.
    derived: &'static [&'static str],
}

const DELEGATES: &[Delegate] = &[Delegate {
    interface: "GenericJob",
    forwarder: "JobObject",
    derived: &[
        "may_restart",
        "label",
        "annotation",
        "queue_name",
        "asks_for_elasticity",
        "is_managed_elsewhere",
        "is_elastic",
    ],
}];

/// Methods with a default that are not forwarded, and listed ones that are or that do not exist.
#[must_use]
pub fn differences(files: &[TextFile]) -> Vec<String> {
    DELEGATES.iter().flat_map(|delegate| delegate.differences(files)).collect()
}

impl Delegate {
    fn differences(&self, files: &[TextFile]) -> Vec<String> {
        let Self { interface, forwarder, derived } = self;
        let product: Vec<&TextFile> = files.iter().filter(|file| file.is_product()).collect();
        let block = |head: &str| product.iter().find_map(|file| block(file.product(), head));
        let Some(declared) = block(&format!("pub trait {interface}")) else {
            return vec![format!("trait {interface} is not there")];
        };
        let Some(forwarded) = block(&format!("impl {interface} for {forwarder}")) else {
            return vec![format!("{forwarder} does not implement {interface}")];
        };
        let forwarded: Vec<&str> = methods(forwarded).map(|(name, _)| name).collect();
        let kept: Vec<&str> = methods(declared)
            .filter(|(name, has_body)| *has_body && !forwarded.contains(name))
            .map(|(name, _)| name)
            .collect();
        let missing = kept.iter().filter(|name| !derived.contains(name));
        let missing = missing.map(|name| format!("{forwarder} does not forward {name}"));
        let stale = derived.iter().filter(|name| !kept.contains(name));
        let stale = stale.map(|name| format!("{forwarder} forwards {name}, or it has no default"));
        missing.chain(stale).collect()
    }
}

/// The lines of an item that begins with `head` at the margin.
fn block<'a>(text: &'a str, head: &str) -> Option<&'a str> {
    let is_head = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default();
        let after = text.get(at + head.len()..).unwrap_or_default();
        (before.is_empty() || before.ends_with('\n')) && after.starts_with([' ', ':', '<'])
    };
    let at = text.match_indices(head).map(|(at, _)| at).find(is_head)?;
    text.get(at..)?.split("\n}").next()
}

/// The methods of a block, each with whether it has a body.
fn methods(block: &str) -> impl Iterator<Item = (&str, bool)> {
    block.split("\n    fn ").skip(1).filter_map(|rest| {
        let end = rest.find(['{', ';'])?;
        Some((files::identifier(rest)?, rest.get(end..)?.starts_with('{')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAIT: &str = "pub trait Answers: Clone {\n    /// A.\n    fn required(&self) -> u8;\n\n    \
                         fn forwarded(\n        &self,\n    ) -> bool {\n        true\n    }\n\n    \
                         fn derived(&self) -> bool {\n        self.forwarded()\n    }\n}\n";

    fn found(forwarded: &str, derived: &'static [&'static str]) -> Vec<String> {
        let forwarder = format!("impl Answers for Either {{\n{forwarded}}}\n");
        let files = [TextFile::new("a/src/a.rs", TRAIT), TextFile::new("a/src/b.rs", forwarder)];
        Delegate { interface: "Answers", forwarder: "Either", derived }.differences(&files)
    }

    #[test]
    fn a_forgotten_method_is_found() {
        let required = "    fn required(&self) -> u8 {\n        0\n    }\n";
        let both =
            format!("{required}\n    fn forwarded(&self) -> bool {{\n        false\n    }}\n");
        assert_eq!(found(&both, &["derived"]), [""; 0]);
        assert_eq!(found(required, &["derived"]), ["Either does not forward forwarded"]);
        let stale = found(&both, &["derived", "forwarded"]);
        assert_eq!(stale, ["Either forwards forwarded, or it has no default"]);
    }

    #[test]
    fn a_type_without_the_trait_is_found() {
        let answers = Delegate { interface: "Answers", forwarder: "Other", derived: &[] };
        let files = [TextFile::new("a/src/a.rs", TRAIT)];
        assert_eq!(answers.differences(&files), ["Other does not implement Answers"]);
    }
}
