//! The table of kinds in `docs/kinds.md`.

use crate::{Kind, Kinds};

pub(super) const BEGIN: &str = "<!-- generated: table of kinds -->\n";
pub(super) const END: &str = "<!-- end -->";

pub(super) fn of(kinds: &Kinds) -> String {
    let head = "| integration | kind | what its jobs are | managedBy | prebuilt Workload | elastic |\n|---|---|---|---|---|---|\n";
    let rows: String = kinds.iter().map(row).collect();
    format!("{head}{rows}")
}

fn row(kind: &Kind) -> String {
    let yes = |holds: bool| if holds { "yes" } else { "no" };
    let fields = match (kind.fields(), kind.pods()) {
        (_, Some(pods)) if pods.group.is_some() => "a group of pods",
        (_, Some(_)) => "pods that are jobs",
        (Some(_), None) => "data",
        (None, None) => "code",
    };
    let managed_by = kind.managed_by();
    let managed_by =
        managed_by.map_or("none".to_owned(), |one| format!("`{}`", one.at.field_path()));
    format!(
        "| `{}` | `{}` {} | {fields} | {managed_by} | {} | {} |\n",
        kind.framework(),
        kind.api_version(),
        kind.name(),
        yes(kind.supports_prebuilt()),
        yes(kind.supports_elastic()),
    )
}
