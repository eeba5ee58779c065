//! Cycles of files: within a crate, at most six files may need each other in a circle.
//!
//! A file needs another one of its crate if it names a path into that module: in a `use` of `crate::`, `super::` or `self::`, or in code.
//! A path counts for the file of the deepest module on it. Test modules are left out. The measure of a crate is its largest set of
//! files each of which reaches each other one (a strongly connected component).

mod named_paths;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use self::named_paths::named_paths;
use crate::{
    files::TextFile,
    packages::{self, WorkspacePackage},
    ratchet::Measure,
};

/// The most files in a cycle.
const LIMIT: usize = 6;

/// The names of a module's ancestors and its own, from the root of the crate; empty for the root.
type ModulePath = Vec<String>;

/// The modules that each module needs.
type ModuleGraph = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// The largest cycle of every crate.
#[must_use]
pub fn measures(packages: &[WorkspacePackage], files: &[TextFile]) -> Vec<Measure> {
    let measure = |package: &WorkspacePackage| {
        let src = package.folder.join("src");
        let cycle = largest_cycle(&graph(&src, packages::rust_files(package, packages, files)));
        Measure {
            rule: "cycle",
            subject: package.name.clone(),
            measured: cycle.len(),
            limit: LIMIT,
            detail: cycle.join(", "),
        }
    };
    packages.iter().map(measure).collect()
}

fn graph<'a>(src: &Path, files: impl Iterator<Item = &'a TextFile>) -> ModuleGraph {
    let modules: BTreeMap<ModulePath, &TextFile> =
        files.filter_map(|file| Some((module_path(src, &file.path)?, file))).collect();
    let is_test = |path: &ModulePath| path.iter().any(|name| name == "tests");
    let needs = |module: &ModulePath, file: &TextFile| -> BTreeSet<ModulePath> {
        let paths = named_paths(file.product());
        let needed = paths.iter().filter_map(|path| resolve(path, module, &modules));
        needed.filter(|other| other != module && !is_test(other)).collect()
    };
    let product = modules.iter().filter(|(module, _)| !is_test(module));
    product.map(|(module, file)| (module.clone(), needs(module, file))).collect()
}

/// The module of a file; `None` if the file is not below `src`.
fn module_path(src: &Path, path: &Path) -> Option<ModulePath> {
    let relative = path.strip_prefix(src).ok()?.with_extension("");
    let mut names: ModulePath =
        relative.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        names.pop();
    }
    Some(names)
}

/// The deepest module with a file on a path that `from` names.
fn resolve(
    path: &[String],
    from: &ModulePath,
    modules: &BTreeMap<ModulePath, &TextFile>,
) -> Option<ModulePath> {
    let first = path.first()?.as_str();
    let n_supers = path.iter().take_while(|name| *name == "super").count();
    let (base, rest) = match first {
        "crate" => (&[][..], path.get(1..)?),
        "self" => (&from[..], path.get(1..)?),
        "super" => (from.get(..from.len().saturating_sub(n_supers))?, path.get(n_supers..)?),
        _ => return None,
    };
    let full: ModulePath = base.iter().chain(rest).cloned().collect();
    let prefixes = (0..=full.len()).rev().filter_map(|n| full.get(..n));
    prefixes.map(<[String]>::to_vec).find(|prefix| modules.contains_key(prefix))
}

/// The names of the modules of the largest cycle, sorted; empty if there is none.
fn largest_cycle(graph: &ModuleGraph) -> Vec<String> {
    let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let cycle = |module: &&ModulePath| -> Vec<String> {
        let there = reached.get(*module).into_iter().flatten();
        let back = |other: &&&ModulePath| {
            reached.get(**other).is_some_and(|from_there| from_there.contains(*module))
        };
        there.filter(back).map(|other| name(other)).collect()
    };
    graph.keys().map(|module| cycle(&module)).max_by_key(Vec::len).unwrap_or_default()
}

fn reachable<'a>(graph: &'a ModuleGraph, from: &'a ModulePath) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let needed = graph.get(module).into_iter().flatten();
        open.extend(needed.filter(|next| graph.contains_key(*next) && reached.insert(*next)));
    }
    reached
}

fn name(module: &ModulePath) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("::") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<TextFile> =
            files.iter().map(|(path, text)| TextFile::new(format!("src/{path}"), *text)).collect();
        largest_cycle(&graph(Path::new("src"), files.iter()))
    }

    #[test]
    fn a_group_in_a_use_does_not_need_its_root() {
        let found = cycle(&[
            ("a/mod.rs", "mod b; mod c; use self::b::B;"),
            ("a/b.rs", "use crate::a::{c::C, c::{D, E}};"),
            ("a/c.rs", ""),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn files_that_need_each_other_are_a_cycle() {
        let found = cycle(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::{self, B as Other};"),
            ("b.rs", "fn f() { super::c::f() }"),
            ("c/mod.rs", "use crate::{a::{A, C}, d};"),
            ("d.rs", ""),
        ]);
        assert_eq!(found, ["a", "b", "c"]);
    }

    #[test]
    fn a_chain_of_files_is_no_cycle() {
        let none: [String; 0] = [];
        assert_eq!(cycle(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c;")]), none);
    }

    #[test]
    fn comments_and_tests_need_nothing() {
        let none: [String; 0] = [];
        let tests = "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
        let files = [
            ("a.rs", "use crate::b::B;"),
            ("b.rs", tests),
            ("b/tests.rs", "use crate::a::A;"),
            ("c.rs", "// use crate::a::A;"),
        ];
        assert_eq!(cycle(&files), none);
    }

    #[test]
    fn a_cycle_above_the_limit_exceeds_the_rule() {
        let text = |next: usize| format!("use crate::m{next}::M;");
        let files: Vec<TextFile> =
            (0..7).map(|n| TextFile::new(format!("x/src/m{n}.rs"), text((n + 1) % 7))).collect();
        let packages = [WorkspacePackage { name: "x".into(), folder: "x".into() }];
        let measures = measures(&packages, &files);
        assert_eq!(measures.len(), 1);
        assert!(measures.iter().all(|one| one.measured == 7 && one.measured > one.limit));
    }
}
