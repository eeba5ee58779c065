//! One object of a manifest as a template: namespace, names and labels come from the release, and some fields from values.
//!
//! The manifests have one form: two spaces per level, and a list at the level of its key. A line therefore shows by itself what it is.

/// The labels of the release, before those of the object.
const LABELS: &str = "  labels:\n    {{- include \"kueue.labels\" . | nindent 4 }}\n";

/// The service account's user name, as the conditions of webhooks have it.
const USER: &str = "system:serviceaccount:kueue-system:";

/// What webhooks of jobs leave out, with the names of the release. The configuration may choose other namespaces.
const NAMESPACES: &str = "  namespaceSelector:
    matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values:
      - kube-system
      - {{ .Release.Namespace }}
";

/// Replaces [`NAMESPACES`] in a template.
const CHOSEN_NAMESPACES: &str = "  namespaceSelector:
    {{- include \"kueue.jobNamespaces\" . | nindent 4 }}
";

/// Replaces the failure policy of a mutating webhook. The default of the API server is not rendered.
const REINVOCATION: &str = "  failurePolicy: Fail
  {{- if ne .Values.mutatingWebhook.reinvocationPolicy \"Never\" }}
  reinvocationPolicy: {{ .Values.mutatingWebhook.reinvocationPolicy }}
  {{- end }}
";

/// The name of the binding in `kube-system`, which a value leaves out.
const AUTH_READER: &str = "  name: sluice-visibility-auth-reader\n";

/// Kinds of objects that get their namespace from a field of their kustomization.
const WITHOUT_NAMESPACE: [&str; 1] = ["kind: PrometheusRule\n"];

/// The template of an object, which ends with a line break.
#[must_use]
pub(crate) fn template(object: &str) -> String {
    let head = head(object);
    let mut text = String::new();
    for line in object.lines().filter(|line| !line.starts_with("# Generated ")) {
        match line {
            "metadata:" => text += &head,
            "  labels:" => text += LABELS,
            line => text += &format!("{}\n", templated(line)),
        }
    }
    let text = text.replace(NAMESPACES, CHOSEN_NAMESPACES);
    let text = if object.contains("kind: MutatingWebhookConfiguration\n") {
        text.replace("  failurePolicy: Fail\n", REINVOCATION)
    } else {
        text
    };
    if object.contains(AUTH_READER) {
        only_if(".Values.enableVisibilityAuthReaderRoleBinding", &text)
    } else {
        text
    }
}

fn only_if(condition: &str, text: &str) -> String {
    format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n")
}

/// Whether the object has labels of its own.
fn has_labels(object: &str) -> bool {
    object.contains("\n  labels:\n")
}

/// `metadata:` with what the release adds to it. The object's own labels follow later, if it has some.
fn head(object: &str) -> String {
    let mut head = "metadata:\n".to_owned();
    if let Some(certificate) = certificate(object) {
        head += "  {{- if .Values.enableCertManager }}\n  annotations:\n";
        head += &format!(
            "    cert-manager.io/inject-ca-from: {{{{ .Release.Namespace }}}}/{{{{ include \"kueue.fullname\" . }}}}-{certificate}\n"
        );
        head += "  {{- end }}\n";
    }
    if WITHOUT_NAMESPACE.iter().any(|kind| object.contains(kind)) {
        head += "  namespace: {{ .Release.Namespace }}\n";
    }
    if !has_labels(object) {
        head += LABELS;
    }
    head
}

/// The Certificate of cert-manager that gives an object its CA, by the end of its name.
fn certificate(object: &str) -> Option<&'static str> {
    let is_called = ["WebhookConfiguration\n", "strategy: Webhook\n"];
    if is_called.iter().any(|part| object.contains(part)) {
        return Some("serving-cert");
    }
    object.contains("kind: APIService\n").then_some("visibility-server-cert")
}

/// A line with the names of the release. Braces of other templates, such as those of alerts, stay as they are.
fn templated(line: &str) -> String {
    let line = line.replace("{{", "{{ \"{{\" }}");
    if line.trim_start().starts_with('#') {
        return line;
    }
    let line = line.replace(USER, "system:serviceaccount:{{ .Release.Namespace }}:");
    for (value, action) in [
        ("namespace: kueue-system", "namespace: {{ .Release.Namespace }}"),
        ("- kueue-system", "- {{ .Release.Namespace }}"),
        // The configuration chooses the Lease.
        ("- c1f6bfd2.kueue.x-k8s.io", "- {{ include \"kueue.leaseName\" . }}"),
        ("app.kubernetes.io/name: kueue", "app.kubernetes.io/name: {{ include \"kueue.name\" . }}"),
    ] {
        if let Some(before) = line.strip_suffix(value) {
            return format!("{before}{action}");
        }
    }
    for key in ["name: ", "- "] {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        if let Some(name) = rest.strip_prefix(key).and_then(|rest| rest.strip_prefix("kueue-")) {
            return format!("{indent}{key}{{{{ include \"kueue.fullname\" . }}}}-{name}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_namespaces_are_those_of_the_release() {
        for (line, expected) in [
            ("  - c1f6bfd2.kueue.x-k8s.io", r#"  - {{ include "kueue.leaseName" . }}"#),
            (
                "  name: kueue-job-editor-role",
                r#"  name: {{ include "kueue.fullname" . }}-job-editor-role"#,
            ),
            (
                "  - kueue-webhook-server-cert",
                r#"  - {{ include "kueue.fullname" . }}-webhook-server-cert"#,
            ),
            ("  namespace: kueue-system", "  namespace: {{ .Release.Namespace }}"),
            ("      - kueue-system", "      - {{ .Release.Namespace }}"),
            (
                "    app.kubernetes.io/name: kueue",
                r#"    app.kubernetes.io/name: {{ include "kueue.name" . }}"#,
            ),
            (
                "  a: x == 'system:serviceaccount:kueue-system:y'",
                "  a: x == 'system:serviceaccount:{{ .Release.Namespace }}:y'",
            ),
            ("  name: sluice-core", "  name: sluice-core"),
            ("  name: clusterqueues.kueue.x-k8s.io", "  name: clusterqueues.kueue.x-k8s.io"),
            ("# in kueue-system", "# in kueue-system"),
            ("  summary: {{ $value }} of it", r#"  summary: {{ "{{" }} $value }} of it"#),
        ] {
            assert_eq!(templated(line), expected);
        }
    }

    #[test]
    fn labels_of_the_release_come_before_those_of_the_object() {
        let labels = "{{- include \"kueue.labels\" . | nindent 4 }}";
        let own = "kind: A\nmetadata:\n  name: a\n  labels:\n    b: c\n";
        let expected =
            format!("kind: A\nmetadata:\n  name: a\n  labels:\n    {labels}\n    b: c\n");
        assert_eq!(template(own), expected);
        let expected = format!("kind: A\nmetadata:\n  labels:\n    {labels}\n  name: a\n");
        assert_eq!(template("kind: A\nmetadata:\n  name: a\n"), expected);
    }

    #[test]
    fn webhooks_leave_out_namespaces_and_are_invoked_as_values_say() {
        let namespaces = NAMESPACES.replace("{{ .Release.Namespace }}", "kueue-system");
        let webhook = format!(
            "kind: MutatingWebhookConfiguration\nmetadata:\n  name: a\nwebhooks:\n- name: b\n  failurePolicy: Fail\n{namespaces}"
        );
        let text = template(&webhook);
        assert!(text.contains(CHOSEN_NAMESPACES) && text.contains(REINVOCATION), "{text}");
        assert!(text.contains("-serving-cert\n"), "{text}");
        let validating = template(&webhook.replace("Mutating", "Validating"));
        assert!(validating.contains(CHOSEN_NAMESPACES) && !validating.contains("reinvocation"));
    }

    #[test]
    fn the_binding_in_another_namespace_is_optional() {
        let text = template(&format!("kind: RoleBinding\nmetadata:\n{AUTH_READER}"));
        let first = "{{- if .Values.enableVisibilityAuthReaderRoleBinding }}\n";
        assert!(text.starts_with(first) && text.ends_with("{{- end }}\n"), "{text}");
    }
}
