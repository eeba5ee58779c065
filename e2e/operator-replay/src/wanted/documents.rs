//! The lists of differences in the references, against the rows of the file.

use std::collections::BTreeSet;

const RAY: &str = include_str!("../../../../docs/reference/ray.md");
const WRAPPER: &str = include_str!("../../../../docs/reference/appwrapper.md");

/// The beginning of keys in the file, the document, and the title of its list.
const LISTS: [(&str, &str, &str); 4] = [
    ("unrecorded:ray/", RAY, "\n## 12. "),
    ("unrecorded:ray-api/", RAY, "\n### Differences to KubeRay's API server\n"),
    ("unrecorded:ray-security/", RAY, "\n### Differences to CodeFlare\n"),
    ("unrecorded:appwrapper/", WRAPPER, "\n## 9. "),
];

/// The keys of a list. A bullet without a key gives its text.
fn documented<'a>(document: &'a str, title: &str) -> BTreeSet<&'a str> {
    let (_, section) = document.split_once(title).expect("the list");
    let section = section.split("\n#").next().unwrap_or_default();
    let bullets = section.lines().filter_map(|line| line.strip_prefix("* "));
    let key = |bullet: &'a str| {
        let begin = bullet.strip_prefix('`').and_then(|rest| rest.split_once("`: "));
        begin.map_or(bullet, |(key, _)| key)
    };
    bullets.map(key).collect()
}

#[test]
fn each_rule_without_a_recording_stands_in_a_document() {
    let keys = || super::lines().map(|(key, _)| key).filter(|key| key.starts_with("unrecorded:"));
    for (prefix, document, title) in LISTS {
        let rows: BTreeSet<&str> = keys().filter_map(|key| key.strip_prefix(prefix)).collect();
        assert_eq!(rows, documented(document, title), "{prefix}");
    }
    let is_listed = |key: &&str| LISTS.iter().any(|(prefix, ..)| key.starts_with(prefix));
    assert_eq!(keys().find(|key| !is_listed(key)), None);
}
