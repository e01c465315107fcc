use key_store::{error::Error, Result, Store, StoreExt as _};

/// Adds a value under a key.
pub fn add<S>(to: &mut S, key: &str, value: S::Value) -> Result<(), Error>
where
    S: Store,
{
    if to.has(key) {
        let _ = to.get_or(key, value.clone());
    }
    to.put(key, value)
}
