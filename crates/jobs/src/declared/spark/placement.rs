//! What a start adds to the pods of a role, in the fields of the role; scheduling gates have none and stand in its template.

use std::collections::BTreeMap;

use crds::{
    decode::from_value,
    pod::{PodMetadata, PodSpec, PodTemplate},
    v1beta2::PodSet,
};
use serde_json::{Value, json};

use super::{Role, SparkSpec};
use crate::{
    pointer::Pointer,
    start::admitted_infos::remove_identity,
    start::pod_set_info::{PodSetInfo, SCHEDULING_GATES, StartError},
};

impl SparkSpec {
    /// Writes what a start adds to the pods. On an error nothing is changed.
    pub(in crate::declared) fn start(
        &self,
        object: &mut Value,
        infos: &[PodSetInfo],
    ) -> Result<(), StartError> {
        let mut started = object.clone();
        for (role, info) in Role::ALL.into_iter().zip(infos) {
            let mut template = self.placement(&started, role);
            info.merge_into(&mut template, false)?;
            self.place(&mut started, role, template);
        }
        // The operator refuses one beside those of the roles, which have it now.
        self.common_selector().remove(&mut started);
        *object = started;
        Ok(())
    }

    /// Removes what a start has added: `infos` has the pods before it, or nothing if they are unknown. Returns whether anything
    /// changed.
    pub(in crate::declared) fn restore(&self, object: &mut Value, infos: &[PodSetInfo]) -> bool {
        let before = object.clone();
        for (index, role) in Role::ALL.into_iter().enumerate() {
            let mut template = self.placement(object, role);
            match infos.get(index).filter(|_| infos.len() == Role::ALL.len()) {
                Some(info) => {
                    self.kept(object, role, info).restore(&mut template, |_| false);
                }
                None => {
                    remove_identity(&mut template);
                }
            }
            if template != self.placement(object, role) {
                self.place(object, role, template);
            }
        }
        *object != before
    }

    /// The info without what stands in the template of a role, which a start does not touch.
    fn kept(&self, object: &Value, role: Role, info: &PodSetInfo) -> PodSetInfo {
        let fields = self.role(role).get(object).unwrap_or(&Value::Null);
        let of_role = |map: &str, kept: &BTreeMap<String, String>| {
            let present = |key: &String| fields[map][key.as_str()].is_string();
            let kept = kept.iter().filter(|(key, _)| present(key));
            kept.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let node_selector = if self.common_selector().get(object).is_some() {
            BTreeMap::new()
        } else {
            info.node_selector.clone()
        };
        PodSetInfo {
            labels: of_role("labels", &info.labels),
            annotations: of_role("annotations", &info.annotations),
            node_selector,
            ..info.clone()
        }
    }

    fn common_selector(&self) -> Pointer {
        self.application.join(&Pointer::of(&["nodeSelector"]))
    }

    /// The fields of a role that a start changes, as a template.
    fn placement(&self, object: &Value, role: Role) -> PodTemplate {
        let fields = self.role(role).get(object).unwrap_or(&Value::Null);
        let map = |value: &Value| from_value(value).unwrap_or_default();
        let own = &fields["nodeSelector"];
        let common = self.common_selector().get(object);
        let gates = &fields["template"]["spec"][SCHEDULING_GATES];
        let spec = PodSpec {
            node_selector: map(if own.is_null() { common.unwrap_or(own) } else { own }),
            tolerations: from_value(&fields["tolerations"]).unwrap_or_default(),
            rest: gates
                .is_array()
                .then(|| (SCHEDULING_GATES.to_owned(), gates.clone()))
                .into_iter()
                .collect(),
            ..PodSpec::default()
        };
        let metadata = PodMetadata {
            labels: map(&fields["labels"]).into(),
            annotations: map(&fields["annotations"]).into(),
            ..PodMetadata::default()
        };
        let set = PodSet {
            template: PodTemplate { metadata: Some(metadata.into()), spec: Some(spec.into()) },
            ..PodSet::default()
        };
        set.template
    }

    /// Writes the fields of a role.
    fn place(&self, object: &mut Value, role: Role, template: PodTemplate) {
        let at = self.role(role);
        let metadata = template.metadata.unwrap_or_default();
        let spec = template.spec.unwrap_or_default();
        for (field, value) in [
            ("labels", json!(metadata.labels)),
            ("annotations", json!(metadata.annotations)),
            ("nodeSelector", json!(spec.node_selector)),
            ("tolerations", json!(spec.tolerations)),
        ] {
            let at = at.join(&Pointer::of(&[field]));
            if value == json!({}) || value == json!([]) {
                at.remove(object);
            } else {
                at.set(object, value);
            }
        }
        let own = at.join(&Pointer::of(&["template"]));
        if own.get(object).is_none() {
            // With the empty field that upstream writes, too.
            let containers = json!([{ "name": role.container(), "resources": {} }]);
            own.set(object, json!({ "spec": { "containers": containers } }));
        }
        let gates = own.join(&Pointer::of(&["spec", SCHEDULING_GATES]));
        match spec.rest.get(SCHEDULING_GATES) {
            Some(all) => gates.set(object, all.clone()),
            None => {
                gates.remove(object);
            }
        }
    }
}
