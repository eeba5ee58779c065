//! Which form of a document a client accepts.

/// A form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentForm {
    /// JSON.
    Plain,
    /// The discovery document of all groups, of this version of `apidiscovery.k8s.io`.
    Discovery(&'static str),
}

/// Versions of the discovery document of all groups.
const DISCOVERY_VERSIONS: [&str; 2] = ["v2", "v2beta1"];

impl DocumentForm {
    /// The first form in an `Accept` header that is served; `None` if it names none. Without the header every form is accepted.
    pub(crate) fn accepted(accept: Option<&str>, offers_discovery: bool) -> Option<Self> {
        let accept = accept.filter(|text| !text.trim().is_empty()).unwrap_or("*/*");
        accept.split(',').find_map(|clause| Self::of_clause(clause, offers_discovery))
    }

    fn of_clause(clause: &str, offers_discovery: bool) -> Option<Self> {
        let mut parts = clause.split(';').map(str::trim);
        let media_type = parts.next()?;
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let parameter =
            |name: &str| parameters.iter().find(|(one, _)| *one == name).map(|(_, value)| *value);
        if !["application/json", "application/*", "*/*"].contains(&media_type) {
            return None;
        }
        match (parameter("as"), parameter("g"), parameter("v")) {
            (None, ..) => Some(Self::Plain),
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some(version)) => {
                let served = DISCOVERY_VERSIONS.into_iter().filter(|_| offers_discovery);
                served.into_iter().find(|one| *one == version).map(Self::Discovery)
            }
            // Another representation, such as a table; clients name plain JSON beside it.
            _ => None,
        }
    }

    /// The header `Content-Type`.
    pub(crate) fn content_type(self) -> String {
        match self {
            Self::Plain => "application/json".to_owned(),
            Self::Discovery(version) => format!(
                "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_served_form_is_taken() {
        let discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let all = format!("{discovery},application/json");
        for (accept, offers, expected) in [
            (None, true, Some(DocumentForm::Plain)),
            (Some(""), true, Some(DocumentForm::Plain)),
            (Some("*/*"), true, Some(DocumentForm::Plain)),
            (
                Some("application/vnd.kubernetes.protobuf, application/json"),
                true,
                Some(DocumentForm::Plain),
            ),
            (
                Some("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
                false,
                Some(DocumentForm::Plain),
            ),
            (Some(&*all), true, Some(DocumentForm::Discovery("v2"))),
            (Some(&*all), false, Some(DocumentForm::Plain)),
            (Some(discovery), false, None),
            (Some("application/vnd.kubernetes.protobuf"), true, None),
            (Some("text/html"), true, None),
        ] {
            assert_eq!(DocumentForm::accepted(accept, offers), expected, "{accept:?}");
        }
        assert_eq!(DocumentForm::Discovery("v2").content_type(), discovery);
    }
}
