//! Roles for the kinds of jobs.

use crate::{Kind, Kinds, integrations::missing_from, pods};

/// What an account may do with jobs and their subresources.
struct Rights {
    jobs: &'static [&'static str],
    status: &'static [&'static str],
    finalizers: &'static [&'static str],
}

/// Starts, stops and follows jobs. Owner references that block deletion need `finalizers` where
/// OwnerReferencesPermissionEnforcement is on.
const RUNS: Rights =
    Rights { jobs: &["list", "patch", "watch"], status: &["patch"], finalizers: &["update"] };

/// The same, and deletes jobs at the end of their retention.
const RUNS_AND_DELETES: Rights = Rights { jobs: &["delete", "list", "patch", "watch"], ..RUNS };

/// The same, and reads owners: `core.yaml` and `webhooks.yaml` in `config/rbac` give that right for the kinds that Kueue knows.
const RUNS_AND_READS_OWNERS: Rights =
    Rights { jobs: &["delete", "get", "list", "patch", "watch"], ..RUNS };

/// Makes copies of jobs.
const COPIES: Rights = Rights {
    jobs: &["create", "delete", "get", "list", "patch", "watch"],
    status: &[],
    finalizers: &[],
};

/// Makes components of AppWrappers, which `RUNS` follows. The submitter has these rights, too (`config/appwrapper-rights`).
const MAKES: Rights = Rights { jobs: &["create", "delete", "get"], status: &[], finalizers: &[] };

const EDITS: Rights = Rights {
    jobs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    status: &["get"],
    finalizers: &[],
};

const VIEWS: Rights = Rights { jobs: &["get", "list", "watch"], status: &["get"], finalizers: &[] };

pub(super) fn of_manager(kinds: &Kinds) -> String {
    of_manager_with(kinds, &RUNS_AND_DELETES)
}

/// For kinds that Kueue does not know.
pub(super) fn of_manager_of_declared(kinds: &Kinds) -> String {
    of_manager_with(kinds, &RUNS_AND_READS_OWNERS)
}

fn of_manager_with(kinds: &Kinds, rights: &Rights) -> String {
    let what = "# The manager suspends and starts jobs, copies their status from workers, and deletes them at the end of their retention.\n";
    format!("{what}{}", bound("sluice-job-kinds", "sluice-manager", kinds, rights))
}

pub(super) fn of_agent(kinds: &Kinds) -> String {
    let what = "# The agent starts and stops the jobs of clones.\n";
    format!("{what}{}", bound("sluice-agent-job-kinds", "sluice-agent", kinds, &RUNS))
}

/// Of an agent that operates AppWrappers.
pub(super) fn of_components(kinds: &Kinds) -> String {
    let what = "# The agent makes the components of AppWrappers, which may be of any kind of jobs that it starts.\n";
    format!("{what}{}", bound("sluice-agent-component-kinds", "sluice-agent", kinds, &MAKES))
}

pub(super) fn of_hub_account(kinds: &Kinds) -> String {
    let what = "# The manager creates and deletes copies of jobs. The right to create jobs allows pods under every account of their\n# namespaces; the agent's file limits namespaces and kinds.\n";
    format!("{what}{}", bound("sluice-hub-job-kinds", "sluice-hub", kinds, &COPIES))
}

/// Editor and viewer of each kind, with upstream's names, also of integrations that are not built.
pub(super) fn of_users(kinds: &Kinds) -> String {
    let built = of_users_named(kinds, |kind| kind.name().to_lowercase());
    let missing = missing_from(Kinds::built_in()).flat_map(|one| {
        [("editor", &EDITS), ("viewer", &VIEWS)].map(|(who, rights)| {
            let status = format!("{}/status", one.plural);
            let rules =
                rule(one.group, one.plural, rights.jobs) + &rule(one.group, &status, rights.status);
            user_role(&one.kind.to_lowercase(), who, &rules)
        })
    });
    std::iter::once(built).chain(missing).collect::<Vec<_>>().join("---\n")
}

/// The same with the group in the names: kinds of several groups may have one name.
pub(super) fn of_users_of_declared(kinds: &Kinds) -> String {
    of_users_named(kinds, Kind::qualified_name)
}

fn of_users_named(kinds: &Kinds, name_of: impl Fn(&Kind) -> String) -> String {
    // Kubernetes' own roles for users have pods.
    let kinds = kinds.iter().filter(|kind| *kind != pods::kind());
    let roles = kinds.flat_map(|kind| {
        [("editor", &EDITS), ("viewer", &VIEWS)]
            .map(|(who, rights)| user_role(&name_of(kind), who, &rules(kind, rights)))
    });
    let roles: Vec<String> = roles.collect();
    format!("# Editors and viewers of jobs.\n{}", roles.join("---\n"))
}

/// A role that users get with those of administrators and users of queues.
fn user_role(of: &str, who: &str, rules: &str) -> String {
    let labels = "  labels:\n    rbac.kueue.x-k8s.io/batch-admin: \"true\"\n    rbac.kueue.x-k8s.io/batch-user: \"true\"\n";
    let name = format!("kueue-{of}-{who}-role");
    format!("{}{labels}rules:\n{rules}", head("ClusterRole", &name))
}

/// A role for all kinds, bound to an account.
fn bound(name: &str, account: &str, kinds: &Kinds, rights: &Rights) -> String {
    let mut rules: String = kinds.iter().map(|kind| rules(kind, rights)).collect();
    // Starts need the objects that pod sets look up, and webhooks read them; copies do not.
    if !rights.status.is_empty() {
        let looked_up = kinds.looked_up();
        let read = looked_up
            .iter()
            .map(|one| rule(&one.gvk.group, &one.plural, &["get", "list", "watch"]));
        rules.extend(read);
    }
    format!(
        "{}rules:\n{rules}---\n{}roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: {name}\n\
         subjects:\n- kind: ServiceAccount\n  name: {account}\n  namespace: kueue-system\n",
        head("ClusterRole", name),
        head("ClusterRoleBinding", name),
    )
}

fn head(kind: &str, name: &str) -> String {
    format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n")
}

fn rules(kind: &Kind, rights: &Rights) -> String {
    let plural = kind.plural();
    // A pod cannot be suspended: its stop is its deletion.
    let with_deletion = [&["delete"], rights.jobs].concat();
    let deletes = kind == pods::kind() && rights.jobs.contains(&"patch");
    let jobs =
        if deletes && !rights.jobs.contains(&"delete") { &with_deletion } else { rights.jobs };
    let all = [
        (plural.to_owned(), jobs),
        (format!("{plural}/status"), rights.status),
        (format!("{plural}/finalizers"), rights.finalizers),
    ];
    let given = all.into_iter().filter(|(_, verbs)| !verbs.is_empty());
    given.map(|(resource, verbs)| rule(kind.group(), &resource, verbs)).collect()
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> String {
    let group = if group.is_empty() { "\"\"" } else { group };
    let verbs: String = verbs.iter().map(|verb| format!("  - {verb}\n")).collect();
    format!("- apiGroups:\n  - {group}\n  resources:\n  - {resource}\n  verbs:\n{verbs}")
}
