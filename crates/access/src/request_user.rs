//! The user of a request.

use std::collections::BTreeMap;

/// The user of a request without credentials.
const ANONYMOUS: &str = "system:anonymous";

/// The group of all users with credentials.
const AUTHENTICATED: &str = "system:authenticated";

/// The group of [`ANONYMOUS`].
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The group with all rights, whatever the authorizer says. As upstream, its members are not reviewed.
const MASTERS: &str = "system:masters";

/// A user, as reviews of access name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestUser {
    /// The name.
    pub name: String,
    /// The uid, if there is one.
    pub uid: Option<String>,
    /// The groups.
    pub groups: Vec<String>,
    /// Further facts about the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl RequestUser {
    /// The user of a request without credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// The user of a request with credentials: a member of `system:authenticated`, unless it is said to be anonymous.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        let decided = |group: &String| [AUTHENTICATED, UNAUTHENTICATED].contains(&group.as_str());
        if self.name != ANONYMOUS && !self.groups.iter().any(decided) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// Whether the user has all rights without a review.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_with_credentials_is_authenticated_unless_it_is_anonymous() {
        let groups = |name: &str, groups: &[&str]| {
            let groups = groups.iter().map(|&group| group.to_owned()).collect();
            let user = RequestUser { name: name.to_owned(), groups, ..RequestUser::default() };
            user.authenticated().groups.join(",")
        };
        assert_eq!(groups("a", &["team"]), "team,system:authenticated");
        assert_eq!(groups("a", &["system:authenticated"]), "system:authenticated");
        // The front proxy passes on anonymous requests, too.
        assert_eq!(
            groups("system:anonymous", &["system:unauthenticated"]),
            "system:unauthenticated"
        );
        assert_eq!(groups("system:anonymous", &[]), "");
    }
}
