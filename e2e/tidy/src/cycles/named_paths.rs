//! Paths into a crate's own modules that a source text names.

/// A piece of a source text, as far as paths consist of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathToken<'a> {
    /// An identifier, a keyword or `*`.
    Word(&'a str),
    /// `::`.
    Separator,
    /// `{`, `}`, `,`, `;` or anything else.
    Mark(char),
}

/// Every path in a `use`, and every path in code that begins with `crate`, `super` or `self`.
pub(super) fn named_paths(text: &str) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let mut paths = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at = match token {
            // The words of a `use` are leaves of its tree, not paths of their own: the root of a group is not needed itself.
            PathToken::Word("use") => use_tree(&tokens, at + 1, &[], &mut paths).max(at + 1),
            PathToken::Word("crate" | "super" | "self") => {
                let (path, end) = plain_path(&tokens, at);
                if path.len() > 1 {
                    paths.push(path.into_iter().map(str::to_owned).collect());
                }
                end.max(at + 1)
            }
            _ => at + 1,
        };
    }
    paths
}

fn tokens(text: &str) -> Vec<PathToken<'_>> {
    text.lines().flat_map(|line| line_tokens(line.split("//").next().unwrap_or_default())).collect()
}

fn line_tokens(code: &str) -> Vec<PathToken<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = code.trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let n_word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (token, length) = if n_word > 0 {
            (PathToken::Word(&rest[..n_word]), n_word)
        } else if rest.starts_with("::") {
            (PathToken::Separator, 2)
        } else {
            (
                if first == '*' { PathToken::Word("*") } else { PathToken::Mark(first) },
                first.len_utf8(),
            )
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Words joined by separators from `at` on, and the position after them.
fn plain_path<'a>(tokens: &[PathToken<'a>], mut at: usize) -> (Vec<&'a str>, usize) {
    let mut path = Vec::new();
    while let Some(PathToken::Word(word)) = tokens.get(at) {
        path.push(*word);
        let next = matches!(tokens.get(at + 2), Some(PathToken::Word(_)));
        if tokens.get(at + 1) != Some(&PathToken::Separator) || !next {
            return (path, at + 1);
        }
        at += 2;
    }
    (path, at)
}

/// Adds the leaves of the tree at `at`, each behind the prefix. Returns the position after the tree.
fn use_tree(
    tokens: &[PathToken<'_>],
    at: usize,
    prefix: &[String],
    leaves: &mut Vec<Vec<String>>,
) -> usize {
    let (words, mut at) = plain_path(tokens, at);
    let mut path = prefix.to_vec();
    path.extend(words.into_iter().map(str::to_owned));
    if tokens.get(at) == Some(&PathToken::Separator) {
        at += 1;
    }
    if tokens.get(at) == Some(&PathToken::Mark('{')) {
        return use_group(tokens, at + 1, &path, leaves);
    }
    if path.len() > prefix.len() {
        leaves.push(path);
    }
    // Past `as Name`.
    while matches!(tokens.get(at), Some(PathToken::Word(_))) {
        at += 1;
    }
    at
}

/// Adds the leaves of all trees up to the closing brace. Returns the position after it.
fn use_group(
    tokens: &[PathToken<'_>],
    mut at: usize,
    prefix: &[String],
    leaves: &mut Vec<Vec<String>>,
) -> usize {
    loop {
        match tokens.get(at) {
            None => return at,
            Some(PathToken::Mark('}')) => return at + 1,
            Some(PathToken::Word(_) | PathToken::Mark('{')) => {
                at = use_tree(tokens, at, prefix, leaves);
            }
            Some(_) => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<String> {
        named_paths(text).into_iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn a_tree_of_uses_is_taken_apart() {
        let text = "use crate::{a::{B, C as D}, e::*};";
        assert_eq!(named(text), ["crate::a::B", "crate::a::C", "crate::e::*"]);
        assert_eq!(named("use super::{\n    a, // b\n    c::D,\n};"), ["super::a", "super::c::D"]);
    }

    #[test]
    fn paths_in_code_count() {
        assert_eq!(named("let a = crate::b::C::new();"), ["crate::b::C::new"]);
        assert_eq!(named("fn f(&self) { self.g(); }"), [""; 0]);
    }
}
