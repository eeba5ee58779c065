//! Reads of one object, which tell an absent object from a 404 of another origin.

use std::fmt::Debug;

use kube::{Api, core::ApiResource};
use serde::de::DeserializeOwned;

use crate::{watch::Key, write::is_absence};

/// The object of this name; `None` if the API server says that it does not exist. `Api::get_opt` also takes a `Status` with the reason
/// NotFound for that which names no object, as of a resource that is not served.
///
/// # Errors
/// If the request fails. A 404 that does not name the object is an error, too.
pub async fn find<K>(api: &Api<K>, resource: &ApiResource, name: &str) -> kube::Result<Option<K>>
where
    K: Clone + Debug + DeserializeOwned,
{
    let key = Key { namespace: None, name: name.into() };
    match api.get(name).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if is_absence(&status, resource, &key) => Ok(None),
        Err(error) => Err(error),
    }
}
