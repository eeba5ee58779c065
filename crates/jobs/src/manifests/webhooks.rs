//! Webhook configurations: those of Kueue's own kinds, and two webhooks for each kind of job.

use crate::{
    Kind, Kinds,
    integrations::{Integration, missing_from},
};

/// The account that the webhooks of frequent writes leave out.
const NOT_BY_THE_MANAGER: &str = "  matchConditions:\n  - name: not-by-the-manager-itself\n    expression: request.userInfo.username != 'system:serviceaccount:kueue-system:sluice-manager'\n";

/// Jobs of the system are never managed.
const NOT_OF_THE_SYSTEM: &str = "  namespaceSelector:\n    matchExpressions:\n    - key: kubernetes.io/metadata.name\n      operator: NotIn\n      values:\n      - kube-system\n      - kueue-system\n";

/// Kueue's own kinds with webhooks.
const OWN_KINDS: &[OwnKind] = &[
    OwnKind { name: "clusterqueue", plural: "clusterqueues", mutated: true, written_often: false },
    OwnKind { name: "cohort", plural: "cohorts", mutated: false, written_often: false },
    OwnKind {
        name: "resourceflavor",
        plural: "resourceflavors",
        mutated: true,
        written_often: false,
    },
    OwnKind { name: "workload", plural: "workloads", mutated: true, written_often: true },
];

struct OwnKind {
    name: &'static str,
    plural: &'static str,
    mutated: bool,
    written_often: bool,
}

/// One webhook of a configuration.
struct WebhookEntry<'a> {
    name: String,
    path: String,
    conditions: &'a str,
    namespaces: &'a str,
    group: &'a str,
    version: &'a str,
    operations: &'a [&'a str],
    resources: Vec<String>,
}

pub(super) fn mutating(kinds: &Kinds) -> String {
    let own = OWN_KINDS.iter().filter(|kind| kind.mutated).map(|kind| own(kind, "mutate"));
    let missing = missing_from(kinds).map(|one| of_missing(one, "mutate"));
    let all =
        sorted(own.chain(missing).chain(kinds.iter().map(|kind| of_built_in(kind, "mutate"))));
    let about = "# Mutating webhooks of Kueue's own kinds and of jobs. The manager sets the CA.\n";
    format!("{about}{}{all}", head("Mutating"))
}

pub(super) fn validating(kinds: &Kinds) -> String {
    let own = OWN_KINDS.iter().map(|kind| own(kind, "validate"));
    let missing = missing_from(kinds).map(|one| of_missing(one, "validate"));
    let all =
        sorted(own.chain(missing).chain(kinds.iter().map(|kind| of_built_in(kind, "validate"))));
    let about = "# Validating webhooks of Kueue's own kinds and of jobs: rules beyond the schema. The manager sets the CA.\n";
    format!("{about}{}{all}", head("Validating"))
}

pub(super) fn patch_mutating(kinds: &Kinds) -> String {
    format!("{}{}", head("Mutating"), sorted(kinds.iter().map(|kind| of_declared(kind, "mutate"))))
}

pub(super) fn patch_validating(kinds: &Kinds) -> String {
    format!(
        "{}{}",
        head("Validating"),
        sorted(kinds.iter().map(|kind| of_declared(kind, "validate")))
    )
}

fn head(form: &str) -> String {
    let name = form.to_lowercase();
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: {form}WebhookConfiguration\nmetadata:\n  \
         name: kueue-{name}-webhook-configuration\nwebhooks:\n"
    )
}

/// By their names. A job is validated without the manager's own writes: those only start, stop and restore it.
fn sorted<'a>(webhooks: impl Iterator<Item = WebhookEntry<'a>>) -> String {
    let mut webhooks: Vec<WebhookEntry<'a>> = webhooks.collect();
    webhooks.sort_by(|one, other| one.name.cmp(&other.name));
    webhooks.iter().map(text).collect()
}

fn own(kind: &OwnKind, verb: &str) -> WebhookEntry<'static> {
    let validates = verb == "validate";
    // Only webhooks look at the status of a Workload.
    let status = (validates && kind.written_often).then(|| format!("{}/status", kind.plural));
    WebhookEntry {
        name: format!("{}{}.kb.io", &verb[..1], kind.name),
        path: format!("/{verb}-kueue-x-k8s-io-v1beta2-{}", kind.name),
        conditions: if kind.written_often { NOT_BY_THE_MANAGER } else { "" },
        namespaces: "",
        group: "kueue.x-k8s.io",
        version: "v1beta2",
        operations: if validates { &["CREATE", "UPDATE"] } else { &["CREATE"] },
        resources: std::iter::once(kind.plural.to_owned()).chain(status).collect(),
    }
}

/// Of an integration that is not built: it warns that its jobs run without quota.
fn of_missing(one: &'static Integration, verb: &str) -> WebhookEntry<'static> {
    WebhookEntry {
        name: format!("{}{}.kb.io", &verb[..1], one.kind.to_lowercase()),
        path: one.webhook_path(verb),
        conditions: "",
        namespaces: NOT_OF_THE_SYSTEM,
        group: one.group,
        version: one.version,
        operations: if verb == "validate" { &["CREATE", "UPDATE"] } else { &["CREATE"] },
        resources: vec![one.plural.to_owned()],
    }
}

/// With upstream's name.
fn of_built_in<'a>(kind: &'a Kind, verb: &str) -> WebhookEntry<'a> {
    of_job(format!("{}{}.kb.io", &verb[..1], kind.name().to_lowercase()), kind, verb)
}

/// With the group in its name: kinds of several groups may have one name, and a name is unique in a configuration.
fn of_declared<'a>(kind: &'a Kind, verb: &str) -> WebhookEntry<'a> {
    of_job(format!("{}{}.kb.io", &verb[..1], kind.qualified_name()), kind, verb)
}

fn of_job<'a>(name: String, kind: &'a Kind, verb: &str) -> WebhookEntry<'a> {
    let validates = verb == "validate";
    WebhookEntry {
        name,
        path: kind.webhook_path(verb),
        conditions: if validates { NOT_BY_THE_MANAGER } else { "" },
        namespaces: NOT_OF_THE_SYSTEM,
        group: kind.group(),
        version: kind.version(),
        // A set passes on to its templates what is changed later.
        operations: if validates || kind.members().is_some() || kind.pods().is_some() {
            &["CREATE", "UPDATE"]
        } else {
            &["CREATE"]
        },
        resources: vec![kind.plural().to_owned()],
    }
}

fn text(webhook: &WebhookEntry<'_>) -> String {
    let WebhookEntry { name, path, conditions, namespaces, group, version, operations, resources } =
        webhook;
    let list = |items: Vec<&str>| -> String {
        items.iter().map(|item| format!("    - {item}\n")).collect()
    };
    let group = if group.is_empty() { "\"\"" } else { group };
    let (operations, resources) =
        (list(operations.to_vec()), list(resources.iter().map(String::as_str).collect()));
    format!(
        "- name: {name}\n  admissionReviewVersions:\n  - v1\n  clientConfig:\n    service:\n      \
         name: kueue-webhook-service\n      namespace: kueue-system\n      path: {path}\n  failurePolicy: Fail\n\
         {conditions}  matchPolicy: Equivalent\n{namespaces}  rules:\n  - apiGroups:\n    - {group}\n    \
         apiVersions:\n    - {version}\n    operations:\n{operations}    resources:\n{resources}  sideEffects: None\n"
    )
}
