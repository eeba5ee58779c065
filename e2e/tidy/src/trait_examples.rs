//! The page of a trait shows an example: the documentation of every public trait has a block of code.
//!
//! A trait that is not public needs none. Test code is left out.

use crate::files::{self, TextFile};

/// Public traits without an example.
#[must_use]
pub fn missing(files: &[TextFile]) -> Vec<String> {
    let product = files.iter().filter(|file| file.is_product());
    let missing = product.flat_map(|file| {
        let names = without_example(file.product()).into_iter();
        names.map(|name| format!("{}: trait {name}", file.path.display()))
    });
    missing.collect()
}

fn without_example(text: &str) -> Vec<&str> {
    let (mut has_example, mut missing) = (false, Vec::new());
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("///") {
            has_example |= line.contains("```");
        } else if !line.starts_with("#[") {
            missing.extend(public_trait(line).filter(|_| !has_example));
            has_example = false;
        }
    }
    missing
}

/// The name of the public trait that a line declares.
fn public_trait(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest).strip_prefix("trait ")?;
    files::identifier(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_trait_without_an_example_is_found() {
        let shown = "/// A.\n///\n/// ```\n/// a();\n/// ```\n#[must_use]\npub trait A {}\n";
        let bare = "/// B.\npub trait B: Sized {}\ntrait Private {}\npub(crate) trait Inner {}\n";
        let file = TextFile::new("a/src/a.rs", format!("{shown}{bare}"));
        assert_eq!(missing(&[file]), ["a/src/a.rs: trait B"]);
        assert_eq!(missing(&[TextFile::new("a/tests/a.rs", bare)]), [""; 0]);
    }

    #[test]
    fn the_example_of_another_item_does_not_count() {
        let text = "/// ```\n/// f();\n/// ```\npub fn f() {}\n\n/// B.\npub trait B {}\n";
        assert_eq!(without_example(text), ["B"]);
    }
}
