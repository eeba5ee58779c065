//! Values that may be shared. A change copies the value first, so that sharing is never observed.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use serde::{Serialize, Serializer};

/// A value that may be shared. Dereferences to the value; a comparison of shared values compares pointers.
///
/// ```
/// use crds::pod::{PodSpec, Shared};
///
/// let one = Shared::from(PodSpec::default());
/// let mut other = one.clone();
/// other.priority_class_name = "high".to_owned();
/// assert!(one.priority_class_name.is_empty() && one != other);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shared<T>(pub(crate) Arc<T>);

impl<T: Clone> Shared<T> {
    /// The value, copied if it is shared.
    #[must_use]
    pub fn into_owned(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
