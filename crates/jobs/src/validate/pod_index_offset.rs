//! The offset of the ranks of a pod template's pods. The pods of a job keep the ranks that they started with, so it is immutable.

use crds::{
    names::annotations::{POD_INDEX_OFFSET, POD_SET_GROUP_NAME},
    validation::{Errors, FieldError, immutable},
};

use super::AnnotatedTemplate;
use crate::{GenericJob, JobGates, go_parse};

/// Errors of the offsets of new jobs.
pub(super) fn check<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    let templates = job.templates().into_iter().filter(|_| is_checked(job, gates));
    templates.flat_map(|template| check_template(&template)).collect()
}

/// Errors of offsets that an update changes, or the groups beside which they stand. One that was stored as it is must not bar other
/// changes, such as those of controllers.
pub(super) fn check_changed<J: GenericJob>(new: &J, old: &J, gates: JobGates) -> Errors {
    let before = old.templates();
    let is_kept = |template: &AnnotatedTemplate<'_>| {
        let stored = before.iter().find(|one| one.path == template.path);
        let same = |stored: &AnnotatedTemplate<'_>| {
            [POD_INDEX_OFFSET, POD_SET_GROUP_NAME]
                .into_iter()
                .all(|key| stored.get(key) == template.get(key))
        };
        stored.is_some_and(same)
    };
    let templates = new.templates().into_iter().filter(|_| is_checked(new, gates));
    let changed = templates.filter(|template| !is_kept(template));
    changed.flat_map(|template| check_template(&template)).collect()
}

/// Errors of offsets that are changed or removed.
pub(super) fn check_change<J: GenericJob>(new: &J, old: &J, gates: JobGates) -> Errors {
    if !is_checked(new, gates) {
        return vec![];
    }
    let templates = new.templates();
    let changed = old.templates().into_iter().filter_map(|before| {
        let offset = before.get(POD_INDEX_OFFSET)?;
        let now = templates.iter().find(|template| template.path == before.path)?;
        let now = now.get(POD_INDEX_OFFSET).unwrap_or_default();
        (now != offset).then(|| immutable(before.field_of(POD_INDEX_OFFSET), now))
    });
    changed.collect()
}

fn is_checked<J: GenericJob>(job: &J, gates: JobGates) -> bool {
    gates.topology && job.checks().pod_index_offset
}

fn check_template(template: &AnnotatedTemplate<'_>) -> Errors {
    let Some(offset) = template.get(POD_INDEX_OFFSET) else { return vec![] };
    let field = template.field_of(POD_INDEX_OFFSET);
    // The ranks of a group count over both of its pod sets. Its offset is never read, so its value is no second error.
    if template.get(POD_SET_GROUP_NAME).is_some() {
        let detail = format!("may not be set when '{POD_SET_GROUP_NAME}' is specified");
        return vec![FieldError::forbidden(field, detail)];
    }
    let detail = match go_parse::integer_of_32_bits(offset) {
        Err(_) => Some("must be a numeric value"),
        Ok(..0) => Some("must be greater than or equal to 0"),
        Ok(_) => None,
    };
    detail.map(|detail| FieldError::invalid(&field, offset, detail)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{
        JobGates, JobObject, Kinds,
        defaulting::{DefaultingFacts, PatchAdd},
        validate,
    };

    const OFFSET: &str = "kueue.x-k8s.io/pod-index-offset";
    const GROUP: &str = "kueue.x-k8s.io/podset-group-name";

    /// An MPIJob with a launcher that works, and these annotations of its templates.
    fn job(launcher: &Value, workers: &Value) -> JobObject {
        let role = |replicas: u32, annotations: &Value| {
            json!({ "replicas": replicas, "template": {
                "metadata": { "annotations": annotations }, "spec": { "containers": [] },
            } })
        };
        let roles = json!({ "Launcher": role(1, launcher), "Worker": role(2, workers) });
        let object = json!({
            "metadata": { "name": "j", "namespace": "ns", "labels": { "kueue.x-k8s.io/queue-name": "q" } },
            "spec": { "runLauncherAsWorker": true, "mpiReplicaSpecs": roles },
        });
        let kind = Kinds::built_in().find("kubeflow.org/v2beta1", "MPIJob").expect("built in");
        kind.decode(object).expect("a job decodes")
    }

    fn texts(new: &Value, old: Option<&Value>, gates: JobGates) -> Vec<String> {
        let none = json!({});
        let errors = match old {
            None => validate::create(&job(&none, new), gates),
            Some(old) => validate::update(&job(&none, new), &job(&none, old), false, gates),
        };
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_offset_is_set_by_default_only_for_a_topology_without_groups() {
        let is_set = |launcher: Value, workers: Value, gates: JobGates| {
            let steps = job(&launcher, &workers).defaults_by(DefaultingFacts::default(), gates);
            let paths = steps.iter().map(|step: &PatchAdd| step.path.as_str());
            paths.filter(|path| path.ends_with("pod-index-offset")).count() == 1
        };
        let (none, group) = (json!({}), json!({ GROUP: "g" }));
        assert!(is_set(none.clone(), none.clone(), JobGates::default()));
        assert!(!is_set(none.clone(), none.clone(), off()), "no topology");
        assert!(!is_set(group.clone(), none.clone(), JobGates::default()));
        assert!(!is_set(none, group, JobGates::default()));
    }

    #[test]
    fn an_offset_is_a_number_that_stays() {
        let at = format!("spec.mpiReplicaSpecs[Worker].template.metadata.annotations[{OFFSET}]");
        let one = |offset: &str| json!({ OFFSET: offset });
        let on = JobGates::default();
        for (offset, detail) in
            [("x", "must be a numeric value"), ("-1", "must be greater than or equal to 0")]
        {
            let expected = format!("{at}: Invalid value: {offset:?}: {detail}");
            assert_eq!(texts(&one(offset), None, on), [expected]);
            assert_eq!(texts(&one(offset), None, off()), [""; 0]);
        }
        let immutable = |now: &str| format!("{at}: Invalid value: {now:?}: field is immutable");
        assert_eq!(texts(&one("0"), None, on), [""; 0]);
        assert_eq!(texts(&one("2"), Some(&one("1")), on), [immutable("2")]);
        assert_eq!(texts(&json!({}), Some(&one("1")), on), [immutable("")]);
        assert_eq!(texts(&one("1"), Some(&json!({})), on), [""; 0], "it may be added");
        let level = "kueue.x-k8s.io/podset-required-topology";
        let forbidden = format!("{at}: Forbidden: may not be set when '{GROUP}' is specified");
        for offset in ["1", "x", "-1"] {
            let grouped = json!({ OFFSET: offset, GROUP: "g", level: "rack" });
            let mut texts = texts(&grouped, None, on);
            texts.retain(|text| text.contains(OFFSET));
            assert_eq!(texts, [forbidden.as_str()], "{offset}");
        }
    }

    #[test]
    fn an_update_is_refused_for_offsets_that_it_changes() {
        let on = JobGates::default();
        for stored in [json!({ OFFSET: "x" }), json!({ OFFSET: "-1" })] {
            assert_eq!(texts(&stored, Some(&stored), on), [""; 0], "{stored}");
        }
        let level = "kueue.x-k8s.io/podset-required-topology";
        let grouped = json!({ OFFSET: "1", GROUP: "g", level: "rack" });
        let forbidden = format!("may not be set when '{GROUP}' is specified");
        let forbids = |old: &Value| {
            texts(&grouped, Some(old), on).iter().any(|text| text.contains(&forbidden))
        };
        assert!(!forbids(&grouped));
        assert!(forbids(&json!({ OFFSET: "1" })), "the group is new");
        let bad = "must be a numeric value";
        assert!(texts(&json!({ OFFSET: "x" }), Some(&json!({})), on)[0].contains(bad));
    }

    fn off() -> JobGates {
        JobGates { topology: false, ..JobGates::default() }
    }
}
