//! Reads recorded cases of kinds of jobs.

use std::io::Read;

use serde_json::Value;

/// A recorded case.
pub(crate) struct RecordedCase(Value);

/// One step of a case.
pub(crate) struct RecordedStep<'a>(&'a Value);

/// All cases of a file.
pub(crate) fn cases(file: &str) -> Vec<RecordedCase> {
    lines(file).into_iter().map(RecordedCase).collect()
}

/// All lines of a file.
pub(crate) fn lines(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/kindsoracle/{file}.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the recording is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("the recording is whole");
    // Placeholders of the recording: a time, and the namespace, which is also part of names.
    let text = text.replace("<time>", "2026-01-01T00:00:00Z").replace("<ns>", "ns");
    text.lines().map(|line| serde_json::from_str(line).expect("a case")).collect()
}

impl RecordedCase {
    pub(crate) fn name(&self) -> &str {
        self.0["case"].as_str().unwrap_or_default()
    }

    /// What the case is about.
    pub(crate) fn kind(&self) -> &str {
        self.0["kind"].as_str().unwrap_or_default()
    }

    /// The namespace of a create: `base`, or `dflt` with a default LocalQueue.
    pub(crate) fn namespace(&self) -> &str {
        self.0["namespace"].as_str().unwrap_or_default()
    }

    pub(crate) fn steps(&self) -> Vec<RecordedStep<'_>> {
        let steps = self.0["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
        steps.iter().filter(|step| !self.is_probe_of_trace(step)).map(RecordedStep).collect()
    }

    /// All steps, those that change nothing among them.
    pub(crate) fn all_steps(&self) -> Vec<RecordedStep<'_>> {
        self.0["steps"].as_array().into_iter().flatten().map(RecordedStep).collect()
    }

    /// Probes of a trace change nothing.
    fn is_probe_of_trace(&self, step: &Value) -> bool {
        self.name().contains("/life/") && step["dry_run"] == true
    }
}

impl RecordedStep<'_> {
    pub(crate) fn number(&self) -> u64 {
        self.0["step"].as_u64().unwrap_or_default()
    }

    /// What followed in a cluster; there is one unless the case is of two.
    pub(crate) fn on_cluster(&self, cluster: &str) -> &Value {
        let then = &self.0["then"];
        then.get(cluster).unwrap_or(then)
    }

    /// Whether the request goes to the worker of two clusters.
    pub(crate) fn is_sent_to_worker(&self) -> bool {
        self.0["cluster"] == "worker"
    }

    /// Method and path.
    pub(crate) fn request(&self) -> Option<(&str, &str)> {
        let request = self.0.get("do").filter(|request| !request.is_null())?;
        Some((request["method"].as_str()?, request["path"].as_str()?))
    }

    /// Whether anything changed, so that the recorder waited for it.
    pub(crate) fn changed_anything(&self) -> bool {
        let changed = self.0.pointer("/then/changed").and_then(Value::as_array);
        changed.is_some_and(|changed| !changed.is_empty()) || self.gone().next().is_some()
    }

    /// Kind and name of the objects that are gone after the step.
    pub(crate) fn gone(&self) -> impl Iterator<Item = &str> {
        let gone = self.0.pointer("/then/gone").and_then(Value::as_array);
        gone.into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn body(&self) -> Option<&Value> {
        self.0.pointer("/do/body")
    }

    /// The words of a webhook that refused the request.
    pub(crate) fn refusal(&self) -> Option<&str> {
        let message = self.0.pointer("/answer/message")?.as_str()?;
        message.split_once(" denied the request: ").map(|(_, text)| text)
    }

    pub(crate) fn answered_object(&self) -> Option<&Value> {
        self.0.pointer("/answer/object")
    }

    /// Objects of a kind as they were after the step, if they changed.
    pub(crate) fn changed(&self, kind: &str) -> Vec<&Value> {
        let changed = self.0.pointer("/then/changed").and_then(Value::as_array);
        changed.into_iter().flatten().filter(|object| object["kind"] == kind).collect()
    }

    /// The name of the object of a patch of a resource itself.
    pub(crate) fn target(&self, resource: &str) -> Option<&str> {
        let path = self.0.pointer("/do/path")?.as_str()?;
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let (_, name) = path.split_once(&format!("/{resource}/"))?;
        let patches = self.0.pointer("/do/method")? == "PATCH";
        (patches && !name.contains('/')).then_some(name)
    }

    /// Whether the request itself writes a job of this kind.
    pub(crate) fn writes(&self, kind: &str) -> bool {
        let path = self.0.pointer("/do/path").and_then(Value::as_str).unwrap_or_default();
        path.contains(&format!("/{}s", kind.to_lowercase())) && !path.ends_with("/status")
    }
}
