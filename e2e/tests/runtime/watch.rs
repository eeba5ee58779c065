//! A watch through faults: its changes add up to the objects that exist, and a list names what was deleted without an event.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context, Result};
use harness::{Component, Fault, FaultProxy, Space};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use prometheus_client::{encoding::text, registry::Registry};
use runtime::Stop;
use runtime::watch::{Change, Config, Watch, WatchMetrics, WatchSource};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::{TIMEOUT, lab};

/// A config map as a program with firm expectations reads it.
#[derive(Clone, Debug, Deserialize)]
struct Light {
    metadata: ObjectMeta,
    data: Colours,
}

#[derive(Clone, Debug, Deserialize)]
struct Colours {
    colour: Colour,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Green,
}

impl Resource for Light {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind(dynamic: &()) -> Cow<'_, str> {
        ConfigMap::kind(dynamic)
    }

    fn group(dynamic: &()) -> Cow<'_, str> {
        ConfigMap::group(dynamic)
    }

    fn version(dynamic: &()) -> Cow<'_, str> {
        ConfigMap::version(dynamic)
    }

    fn plural(dynamic: &()) -> Cow<'_, str> {
        ConfigMap::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// What the changes add up to.
struct WatchedObjects {
    changes: mpsc::Receiver<Change<Light>>,
    lights: BTreeMap<String, Colour>,
    removed_by_list: Vec<String>,
    resets: usize,
    registry: Registry,
    stop: Stop,
}

impl WatchedObjects {
    /// Of the config maps that these tests make.
    fn start(space: &Space, client: Client) -> Self {
        let metrics = WatchMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let source = WatchSource::all(client).in_namespace(space.namespace());
        let source = source.with_config(Config::default().labels("light=yes"));
        let watch = Watch::typed("lights", |text| serde_json::from_str(text), &source, &metrics);
        let (sender, changes) = mpsc::channel(4);
        let stop = Stop::new();
        tokio::spawn(watch.run(sender, stop.clone()));
        let (lights, removed_by_list) = (BTreeMap::new(), Vec::new());
        Self { changes, lights, removed_by_list, resets: 0, registry, stop }
    }

    fn enter(&mut self, change: Change<Light>) {
        match change {
            Change::Apply(light) => self.set(&light),
            Change::Delete(key) => {
                let gone = self.lights.remove(&*key.name);
                assert!(gone.is_some(), "{key} was never there");
            }
            Change::Reset { objects, removed } => {
                self.resets += 1;
                objects.iter().for_each(|light| self.set(light));
                for key in removed {
                    let gone = self.lights.remove(&*key.name);
                    assert!(gone.is_some(), "{key} was never there");
                    self.removed_by_list.push(key.name.to_string());
                }
            }
            Change::Unavailable { .. } => unreachable!("the kind is not optional"),
        }
    }

    fn set(&mut self, light: &Light) {
        assert_eq!(light.metadata.managed_fields, None);
        self.lights.insert(light.name_any(), light.data.colour);
    }

    /// Takes changes until these lights, and no others, are known.
    async fn until(&mut self, wanted: &[(&str, Colour)]) -> Result<()> {
        let wanted: BTreeMap<String, Colour> =
            wanted.iter().map(|(name, colour)| ((*name).to_owned(), *colour)).collect();
        let arrives = async {
            while self.resets == 0 || self.lights != wanted {
                let change = self.changes.recv().await.context("the watch ended")?;
                self.enter(change);
            }
            anyhow::Ok(())
        };
        let arrived = timeout(TIMEOUT, arrives).await;
        arrived.with_context(|| format!("instead of {wanted:?}: {:?}", self.lights))?
    }

    fn metrics(&self) -> Result<String> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Drop for WatchedObjects {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn light(name: &str, colour: &str) -> Result<ConfigMap> {
    let metadata = json!({"name": name, "labels": {"light": "yes"}});
    Ok(serde_json::from_value(json!({"metadata": metadata, "data": {"colour": colour}}))?)
}

async fn make(maps: &Api<ConfigMap>, name: &str, colour: &str) -> Result<()> {
    maps.create(&PostParams::default(), &light(name, colour)?).await?;
    Ok(())
}

async fn delete(maps: &Api<ConfigMap>, name: &str) -> Result<()> {
    maps.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn a_cut_connection_loses_nothing() -> Result<()> {
    let space = lab().await?.space("cut_watch").await?;
    let cluster = space.manager()?;
    let maps: Api<ConfigMap> = cluster.api(space.namespace());
    make(&maps, "a", "red").await?;
    make(&maps, "b", "red").await?;
    let proxy = FaultProxy::start(cluster).await?;
    let mut watched = WatchedObjects::start(&space, proxy.client().await?);
    watched.until(&[("a", Colour::Red), ("b", Colour::Red)]).await?;

    proxy.cut();
    make(&maps, "c", "green").await?;
    let three = [("a", Colour::Red), ("b", Colour::Red), ("c", Colour::Green)];
    watched.until(&three).await?;

    proxy.set(Fault::Refuse);
    delete(&maps, "a").await?;
    make(&maps, "d", "green").await?;
    proxy.set(Fault::None);
    watched.until(&[("b", Colour::Red), ("c", Colour::Green), ("d", Colour::Green)]).await
}

#[tokio::test]
async fn what_was_deleted_before_a_restart_of_the_api_server_is_named() -> Result<()> {
    let space = lab().await?.space_alone("restarted").await?;
    let cluster = space.manager()?;
    let maps: Api<ConfigMap> = cluster.api(space.namespace());
    make(&maps, "a", "red").await?;
    make(&maps, "b", "red").await?;
    let proxy = FaultProxy::start(cluster).await?;
    let mut watched = WatchedObjects::start(&space, proxy.client().await?);
    watched.until(&[("a", Colour::Red), ("b", Colour::Red)]).await?;

    // The new process does not remember the deletion, so only a list can tell.
    proxy.set(Fault::Refuse);
    delete(&maps, "a").await?;
    cluster.kill(Component::ApiServer)?;
    cluster.restart(Component::ApiServer).await?;
    proxy.set(Fault::None);
    watched.until(&[("b", Colour::Red)]).await?;
    assert_eq!(watched.removed_by_list, ["a"]);
    assert!(watched.resets > 1);

    make(&maps, "c", "green").await?;
    watched.until(&[("b", Colour::Red), ("c", Colour::Green)]).await
}

#[tokio::test]
async fn an_object_that_does_not_decode_does_not_stop_the_others() -> Result<()> {
    let space = lab().await?.space("unreadable").await?;
    let cluster = space.manager()?;
    let maps: Api<ConfigMap> = cluster.api(space.namespace());
    make(&maps, "listed", "mauve").await?;
    make(&maps, "a", "red").await?;
    let mut watched = WatchedObjects::start(&space, cluster.client());
    watched.until(&[("a", Colour::Red)]).await?;

    make(&maps, "watched", "mauve").await?;
    make(&maps, "b", "green").await?;
    watched.until(&[("a", Colour::Red), ("b", Colour::Green)]).await?;
    let metrics = watched.metrics()?;
    assert!(metrics.contains("watch_unreadable_objects{watch=\"lights\"} 2\n"), "{metrics}");
    assert!(metrics.contains("watch_failures_total{watch=\"lights\"} 0\n"), "{metrics}");

    // Mended ones come in, and a spoilt one stays as it was known.
    maps.replace("watched", &PostParams::default(), &light("watched", "green")?).await?;
    maps.replace("a", &PostParams::default(), &light("a", "mauve")?).await?;
    make(&maps, "c", "green").await?;
    let all = [
        ("a", Colour::Red),
        ("b", Colour::Green),
        ("c", Colour::Green),
        ("watched", Colour::Green),
    ];
    watched.until(&all).await?;
    delete(&maps, "a").await?;
    watched.until(&all[1..]).await?;
    let metrics = watched.metrics()?;
    assert!(metrics.contains("watch_unreadable_objects{watch=\"lights\"} 1\n"), "{metrics}");
    Ok(())
}
