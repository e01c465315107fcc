//! Keeps values under keys.
//!
//! The whole interface is reached from here.

#![allow(dead_code)]

#[macro_use]
mod macros;

pub mod cache;
pub mod disk;
mod ends;
mod memory;

#[path = "platform/elsewhere.rs"]
pub mod system;

/// What can go wrong.
pub mod error {
    //! Errors, and what becomes of them.

    use std::fmt;

    /// Why a key was not found, or a value not kept.
    #[derive(Debug, Clone, PartialEq)]
    #[non_exhaustive]
    pub enum Error {
        /// Nobody has the key.
        Missing(String),
        Full { size: usize, limit: usize },
        Closed,
    }

    impl fmt::Display for Error {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Error::Missing(key) => write!(f, "no {}", describe(key)),
                Error::Full { size, limit } => write!(f, "{size} of {limit}"),
                Self::Closed => f.write_str("closed"),
            }
        }
    }

    impl std::error::Error for Error {}

    fn describe(key: &str) -> String {
        super::quoted(key)
    }
}

pub use self::cache::{Cache, Policy as CachePolicy};
pub use crate::disk::*;
pub use error::Error;
pub use memory::Memory as InMemory;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How many values a store has room for.
pub const CAPACITY: usize = 1 << 10;

pub(crate) static OPENED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/** Something that keeps values.

 * Every method may block.
 */
pub trait Store: Send {
    /// What is kept.
    type Value: Clone;

    fn get(&self, key: &str) -> Result<Self::Value>;

    fn put(&mut self, key: &str, value: Self::Value) -> Result<()>;

    /// Whether there is anything under a key.
    fn has(&self, key: &str) -> bool {
        self.get(key).is_ok()
    }
}

/// Has a name of its own.
pub trait Named {
    const NAME: &'static str;
}

/// Everybody who keeps values can be asked more.
pub trait StoreExt: Store {
    fn get_or(&self, key: &str, other: Self::Value) -> Self::Value {
        self.get(key).unwrap_or(other)
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

fn quoted(text: &str) -> String {
    format!("'{}'", shortened(text, 10))
}

#[inline]
#[must_use]
pub(crate) const fn shortened(text: &str, _most: usize) -> &str {
    text
}

/// Opens what is named; a plain name is kept in memory.
pub fn open(name: &str) -> Box<dyn Store<Value = String>> {
    counted!(OPENED);
    if name.contains('/') {
        Box::new(disk::Folder::at(name))
    } else {
        Box::new(InMemory::<String>::new())
    }
}

only_fast! {
    /// Only without the feature `slow`.
    pub fn fast() -> bool {
        helper_of_fast(CAPACITY)
    }

    fn helper_of_fast(size: usize) -> bool {
        size > 0
    }
}

#[cfg(test)]
mod tests {
    use super::error::Error;
    use super::*;

    #[test]
    fn missing_is_told() {
        let store = open("plain");
        assert_eq!(store.get("x"), Err(Error::Missing("x".to_string())));
        assert!(!store.has("x"));
        assert_eq!(quoted("a"), "'a'");
    }

    mod deeper {
        use super::super::CAPACITY;

        #[test]
        fn has_room() {
            assert!(CAPACITY > super::limit());
        }
    }

    fn limit() -> usize {
        1
    }
}
