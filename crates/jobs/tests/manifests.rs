//! The committed manifests follow from the kinds of jobs.

use std::{fs, path::Path};

use jobs::{Kinds, integrations::INTEGRATIONS, manifests};

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
    assert!(role.contains("- widgets\n  verbs:\n  - delete\n  - get\n"), "{role}");
}

/// Paths of a file with the text behind `key`.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let lines = text.lines().map(|line| line.trim_start_matches(['-', ' ']));
    lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).collect()
}

/// docs/reference/kueue.md §5.1.
#[test]
fn every_webhook_of_kueue_is_there_under_its_name() {
    let own = ["clusterqueue", "resourceflavor", "workload"].map(str::to_owned);
    let of_jobs = INTEGRATIONS.iter().map(|one| one.kind.to_lowercase());
    let names: Vec<String> = own.into_iter().chain(of_jobs).collect();
    for (verb, file) in [("mutate", "mutating"), ("validate", "validating")] {
        let text = committed(&format!("config/webhook/{file}.yaml"));
        let (there, paths) = (values(&text, "name"), values(&text, "path"));
        for name in &names {
            let webhook = format!("{}{name}.kb.io", &verb[..1]);
            assert!(there.contains(&webhook.as_str()), "{webhook}");
        }
        for one in INTEGRATIONS {
            assert!(paths.contains(&one.webhook_path(verb).as_str()), "{one:?}");
        }
    }
    let validating = committed("config/webhook/validating.yaml");
    assert!(
        validating.contains("name: vcohort.kb.io") && validating.contains("- workloads/status")
    );
}

/// docs/reference/kueue.md §6.8.
#[test]
fn every_role_of_kueue_for_users_is_there_and_aggregated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/rbac");
    let read = |folder: &Path| -> String {
        let files = fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
        let files = files.map(|file| file.path()).filter(|path| path.is_file());
        files.map(|path| fs::read_to_string(path).expect("a file") + "\n---\n").collect()
    };
    let text = read(&folder) + &read(&folder.join("users"));
    let roles: Vec<&str> = text.split("---\n").collect();
    let role = |name: &str| {
        let line = format!("  name: {name}\n");
        let found =
            roles.iter().find(|role| role.contains("kind: ClusterRole\n") && role.contains(&line));
        *found.unwrap_or_else(|| panic!("{name} is missing"))
    };
    let (admin, user) =
        ("rbac.kueue.x-k8s.io/batch-admin: \"true\"", "rbac.kueue.x-k8s.io/batch-user: \"true\"");
    assert!(role("kueue-batch-admin-role").contains("aggregationRule"));
    assert!(role("kueue-batch-user-role").contains("aggregationRule"));
    role("kueue-metrics-reader");
    for kind in ["clusterqueue", "localqueue", "cohort", "resourceflavor", "topology", "workload"] {
        assert!(role(&format!("kueue-{kind}-editor-role")).contains(admin), "{kind}");
        let viewer = role(&format!("kueue-{kind}-viewer-role"));
        let users = ["localqueue", "workload"].contains(&kind);
        assert_eq!((viewer.contains(admin), viewer.contains(user)), (true, users), "{kind}");
    }
    // Kubernetes' own roles for users have pods and Deployments.
    let of_kubernetes = ["pod", "deployment"];
    for one in INTEGRATIONS.iter().filter(|one| !of_kubernetes.contains(&one.name)) {
        for who in ["editor", "viewer"] {
            let text = role(&format!("kueue-{}-{who}-role", one.kind.to_lowercase()));
            assert!(text.contains(admin) && text.contains(user), "{one:?}");
        }
    }
    assert!(role("kueue-pending-workloads-cq-viewer-role").contains(admin));
    let pending = role("kueue-pending-workloads-lq-viewer-role");
    assert!(pending.contains(admin) && pending.contains(user));
    assert!(pending.contains("rbac.authorization.k8s.io/aggregate-to-view: \"true\""));
}
