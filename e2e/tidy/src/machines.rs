//! A machine owns its state: a struct that the map of [`MAP`] names as a machine has private fields only.
//!
//! Another machine that reads a field depends on how the state is kept, and no method says what it asks.

use std::path::Path;

use crate::files::{self, TextFile};

/// The file with the map of machines.
const MAP: &str = "crates/cluster/src/control/mod.rs";

/// Fields of machines that others can read.
#[must_use]
pub fn open_fields(files: &[TextFile]) -> Vec<String> {
    let map = files.iter().find(|file| file.path == Path::new(MAP));
    let machines: Vec<&str> = map.map(|map| machines(&map.text)).unwrap_or_default();
    let folder = Path::new(MAP).parent().unwrap_or(Path::new(""));
    let product = files.iter().filter(|file| file.is_product() && file.path.starts_with(folder));
    let open = product.flat_map(|file| {
        machines.iter().flat_map(|name| {
            let fields = fields_of(file.product(), name).filter(|line| line.starts_with("pub"));
            let words = |line: &str| format!("{}: {name}: {line}", file.path.display());
            fields.map(words).collect::<Vec<_>>()
        })
    });
    open.collect()
}

/// The types in the second column of the map.
fn machines(text: &str) -> Vec<&str> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | "));
    let machines = rows.filter_map(|row| {
        let column = row.split('|').nth(1)?.trim();
        let path = column.trim_start_matches('[').trim_end_matches(']').trim_matches('`');
        path.split_once("::").map(|(_, name)| name)
    });
    machines.collect()
}

/// The lines of the fields of a struct.
fn fields_of<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let declared = text.split("struct ").skip(1);
    let body = declared.filter(|rest| files::identifier(rest) == Some(name)).find_map(|rest| {
        let (_, body) = rest.split_once('{')?;
        body.split("\n}").next()
    });
    body.unwrap_or_default().lines().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_a_machine_that_others_can_read_is_found() {
        let map = "//! | room | machine | decides |\n//! |---|---|---|\n//! | `a` | [`a::Open`] | x |\n//! | `b` | \
                   `b::Closed` | x |\n//! | `c` | agenda | x |\n";
        let a = "/// See.\npub(crate) struct Open {\n    one: u8,\n    pub(crate) two: u8,\n}\n\npub(crate) struct \
                 Other {\n    pub(crate) three: u8,\n}\n";
        let b = "pub(crate) struct Closed {\n    one: u8,\n}\n";
        let file = |name: &str, text: &str| {
            TextFile::new(format!("crates/cluster/src/control/{name}.rs"), text)
        };
        let files = [file("mod", map), file("a", a), file("b", b)];
        let found = "crates/cluster/src/control/a.rs: Open: pub(crate) two: u8,";
        assert_eq!(open_fields(&files), [found]);
    }
}
