//! The offset of the ranks of a pod template's pods. The pods of a job keep the ranks that they started with, so it is immutable.

use crds::{
    names::annotations::{POD_INDEX_OFFSET, POD_SET_GROUP_NAME},
    validation::{Errors, FieldError, immutable},
};

use super::AnnotatedTemplate;
use crate::{GenericJob, JobGates};

/// Errors of the offsets of new and changed jobs.
pub(super) fn check<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    let templates = job.templates().into_iter().filter(|_| is_checked(job, gates));
    templates.flat_map(|template| check_template(&template)).collect()
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
    gates.topology && job.checks_pod_index_offset()
}

fn check_template(template: &AnnotatedTemplate<'_>) -> Errors {
    let Some(offset) = template.get(POD_INDEX_OFFSET) else { return vec![] };
    let field = template.field_of(POD_INDEX_OFFSET);
    let detail = match offset.parse::<i32>() {
        Err(_) => Some("must be a numeric value"),
        Ok(..0) => Some("must be greater than or equal to 0"),
        Ok(_) => None,
    };
    let mut errors: Errors =
        detail.map(|detail| FieldError::invalid(&field, offset, detail)).into_iter().collect();
    // The ranks of a group count over both of its pod sets.
    if template.get(POD_SET_GROUP_NAME).is_some() {
        let detail = format!("may not be set when '{POD_SET_GROUP_NAME}' is specified");
        errors.push(FieldError::forbidden(field, detail));
    }
    errors
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
        let grouped = json!({ OFFSET: "1", GROUP: "g", level: "rack" });
        let forbidden = format!("{at}: Forbidden: may not be set when '{GROUP}' is specified");
        assert!(texts(&grouped, None, on).contains(&forbidden));
    }

    fn off() -> JobGates {
        JobGates { topology: false, ..JobGates::default() }
    }
}
