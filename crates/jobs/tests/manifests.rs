//! The committed manifests follow from the kinds of jobs.

use std::{fs, path::Path};

use jobs::{Kinds, manifests};

fn committed(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_default()
}

#[test]
fn generated_files_are_up_to_date() {
    let files = manifests::files(Kinds::built_in());
    let stale = files.iter().filter(|file| committed(file.path) != file.text);
    let stale: Vec<&str> = stale.map(|file| file.path).collect();
    assert_eq!(stale, [""; 0], "stale: run `make generate`");
    let document = committed("docs/kinds.md");
    let with_table = manifests::with_table(&document, Kinds::built_in());
    assert_eq!(with_table.as_deref(), Some(document.as_str()), "stale: run `make generate`");
}

#[test]
fn a_declared_kind_gets_roles_and_webhooks_of_its_own() {
    let text = "framework: a\ngroup: example.com\nversion: v1\nkind: Widget\nplural: widgets\nsuspend: /spec/suspend\n\
                fields: { podSets: [{ name: { fixed: main }, template: /spec/template }] }\n";
    let kinds = Kinds::declared(text).expect("a kind");
    let manifests = manifests::of_declared(&kinds);
    for part in [
        "name: sluice-declared-job-kinds\n",
        "name: sluice-hub-declared-job-kinds\n",
        "- widgets/status\n",
        "path: /mutate-example-com-v1-widget\n",
        "- name: vwidget.example.com.kb.io\n",
        "name: kueue-widget.example.com-editor-role\n",
    ] {
        assert!(manifests.contains(part), "{part}");
    }
    assert!(!manifests.contains("- jobs\n"), "nothing of the built-in kinds");
}

#[test]
fn kinds_of_one_name_in_two_groups_share_no_name() {
    let widget = |group: &str| {
        format!(
            "framework: {group}/widget\ngroup: {group}\nversion: v1\nkind: Widget\nplural: widgets\nsuspend: /spec/suspend\n\
             fields: {{ podSets: [{{ name: {{ fixed: main }}, template: /spec/template }}] }}\n"
        )
    };
    let text = format!("{}---\n{}", widget("example.com"), widget("example.org"));
    let kinds = Kinds::declared(&text).expect("kinds");
    let manifests = manifests::of_declared_on_manager(&kinds);
    let lines = manifests.lines();
    let names = lines.filter(|line| line.contains(".kb.io") || line.ends_with("-role"));
    let mut names: Vec<&str> = names.collect();
    assert_eq!(names.len(), 8, "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 8, "{names:?}");
}

#[test]
fn the_manager_may_read_owners_of_a_declared_kind() {
    let text = "framework: a\ngroup: example.com\nversion: v1\nkind: Widget\nplural: widgets\nsuspend: /spec/suspend\n\
                fields: { podSets: [{ name: { fixed: main }, template: /spec/template }] }\n";
    let kinds = Kinds::declared(text).expect("a kind");
    let manifests = manifests::of_declared_on_manager(&kinds);
    let role = manifests.split("---").next().expect("the manager's role");
    assert!(role.contains("- widgets\n  verbs:\n  - get\n"), "{role}");
}
