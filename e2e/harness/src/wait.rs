//! Waiting for objects: a watch with a deadline.

use std::fmt::{self, Debug, Write as _};
use std::time::Duration;

use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::backlog;
use crate::cluster::Cluster;
use crate::follow::{Follow, FollowedChange};
use crate::machine;

/// Maximum number of objects in an error message.
const SHOW_AT_MOST: usize = 5;

/// What was waited for did not happen in time.
pub struct GaveUp(pub(crate) Box<Circumstances>);

/// The state at the end of a failed wait.
pub(crate) struct Circumstances {
    pub(crate) what: String,
    pub(crate) place: String,
    pub(crate) within: Duration,
    pub(crate) seen: String,
    pub(crate) trouble: Option<String>,
    pub(crate) machine: String,
    pub(crate) processes: String,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Circumstances { what, place, within, seen, trouble, machine, processes } = &*self.0;
        writeln!(f, "gave up after {within:?} on {place}: {what}\n{machine}")?;
        if let Some(trouble) = trouble {
            writeln!(f, "the API server last said: {trouble}")?;
        }
        writeln!(f, "{seen}")?;
        f.write_str(processes)
    }
}

/// As it is displayed: `unwrap` and `?` in tests print this one.
impl Debug for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for GaveUp {}

/// An object that can be waited for.
///
/// Every API type is one. A wait follows a watch of the kind, so its condition sees each state that the API server reports, and it
/// ends with the first one that meets it.
///
/// ```ignore
/// let within = Duration::from_secs(30);
/// let finished = cluster.until(&jobs, "train", "is finished", within, |job: &Job| is_finished(job));
/// let job = finished.await?;
/// ```
pub trait Watched:
    Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static
{
}
impl<K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static> Watched for K {}

impl Cluster {
    /// Waits until the object `name` is there and `condition` holds for it.
    pub async fn until<K: Watched>(
        &self,
        api: &Api<K>,
        name: &str,
        what: &str,
        within: Duration,
        condition: impl Fn(&K) -> bool,
    ) -> Result<K, GaveUp> {
        let follow = Follow::new(api.clone()).named(name);
        let what = format!("{name} {what}");
        let found = |objects: &[K]| objects.iter().any(&condition);
        let mut objects = self.watch(follow, &what, within, found).await?;
        objects
            .pop()
            .ok_or_else(|| self.gave_up(&what, within, LastSeen::text("it vanished"), None))
    }

    /// Waits until there is no object of this name.
    pub async fn until_gone<K: Watched>(
        &self,
        api: &Api<K>,
        name: &str,
        within: Duration,
    ) -> Result<(), GaveUp> {
        let follow = Follow::new(api.clone()).named(name);
        self.watch(follow, &format!("{name} gone"), within, <[K]>::is_empty).await.map(drop)
    }

    /// Waits until `condition` holds for all objects that have the labels (`""`: all there are), in the order of names.
    pub async fn until_all<K: Watched>(
        &self,
        api: &Api<K>,
        labels: &str,
        what: &str,
        within: Duration,
        condition: impl Fn(&[K]) -> bool,
    ) -> Result<Vec<K>, GaveUp> {
        let follow = Follow::new(api.clone());
        let follow = if labels.is_empty() { follow } else { follow.labelled(labels) };
        self.watch(follow, what, within, condition).await
    }

    async fn watch<K: Watched>(
        &self,
        mut follow: Follow<K>,
        what: &str,
        within: Duration,
        condition: impl Fn(&[K]) -> bool,
    ) -> Result<Vec<K>, GaveUp> {
        let deadline = Instant::now() + within;
        let mut known: Option<Vec<K>> = None;
        loop {
            let Ok(change) = timeout_at(deadline, follow.next()).await else {
                let trouble = follow.trouble().map(str::to_owned);
                let seen = LastSeen::of(known.as_deref(), follow.namespace());
                return Err(self.gave_up(what, within, seen, trouble));
            };
            let mut objects = known.take().unwrap_or_default();
            take(&mut objects, change);
            if condition(&objects) {
                return Ok(objects);
            }
            known = Some(objects);
        }
    }

    pub(crate) fn gave_up(
        &self,
        what: &str,
        within: Duration,
        seen: LastSeen,
        trouble: Option<String>,
    ) -> GaveUp {
        let LastSeen { text: seen, namespace } = seen;
        let processes =
            backlog::ailing(self.state()) + &backlog::tails(self.state(), namespace.as_deref());
        let (what, place) = (what.to_owned(), self.name().to_owned());
        let machine = machine::describe();
        GaveUp(Box::new(Circumstances { what, place, within, seen, trouble, machine, processes }))
    }
}

/// What was seen last.
pub(crate) struct LastSeen {
    text: String,
    /// The namespace of the objects, or the one that was watched.
    namespace: Option<String>,
}

impl LastSeen {
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), namespace: None }
    }

    fn of<K: Watched>(known: Option<&[K]>, watched: Option<&str>) -> Self {
        let first = known.and_then(<[K]>::first);
        let namespace = first.and_then(|object| key(object).0).or(watched).map(str::to_owned);
        Self { text: describe(known), namespace }
    }
}

fn key<K: Watched>(object: &K) -> (Option<&str>, Option<&str>) {
    let metadata = object.meta();
    (metadata.namespace.as_deref(), metadata.name.as_deref())
}

/// Notes a change in `objects`, which are in the order of their keys.
pub(crate) fn take<K: Watched>(objects: &mut Vec<K>, change: FollowedChange<K>) {
    match change {
        FollowedChange::Listed(all) => {
            *objects = all;
            objects.sort_by(|one, other| key(one).cmp(&key(other)));
        }
        FollowedChange::Applied(object) => {
            match objects.binary_search_by(|known| key(known).cmp(&key(&object))) {
                Ok(place) => objects[place] = object,
                Err(place) => objects.insert(place, object),
            }
        }
        FollowedChange::Deleted(object) => objects.retain(|known| key(known) != key(&object)),
    }
}

/// The objects as YAML, without noise such as `managedFields`.
fn describe<K: Watched>(known: Option<&[K]>) -> String {
    let Some(known) = known else {
        return "nothing was ever seen: the API server did not answer".to_owned();
    };
    if known.is_empty() {
        return "there is no such object".to_owned();
    }
    let mut text = format!("{} objects as last seen:\n", known.len());
    for object in known.iter().take(SHOW_AT_MOST) {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        if let Some(metadata) = value.get_mut("metadata").and_then(|meta| meta.as_object_mut()) {
            metadata.remove("managedFields");
        }
        let yaml = serde_saphyr::to_string(&value).unwrap_or_else(|error| error.to_string());
        let _ = writeln!(text, "{}:\n{}", object.name_any(), backlog::indented(&yaml));
    }
    if known.len() > SHOW_AT_MOST {
        let _ = write!(text, "… and {} more", known.len() - SHOW_AT_MOST);
    }
    text
}
