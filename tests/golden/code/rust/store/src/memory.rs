use std::collections::HashMap;

use super::{error::Error, Named, Result, Store};

/// Keeps values as long as it lives.
#[derive(Debug, Default)]
pub struct Memory<V> {
    values: HashMap<String, V>,
    /// How often it was asked.
    asked: std::cell::Cell<u64>,
    limit: Limit,
}

#[derive(Debug, Clone, Copy)]
struct Limit(pub usize, Unit);

#[derive(Debug, Clone, Copy, Default)]
struct Unit;

impl Default for Limit {
    fn default() -> Self {
        Limit(crate::CAPACITY, Unit)
    }
}

impl Limit {
    fn allows(self, size: usize) -> bool {
        self.1.weigh(size) < self.0
    }
}

impl Unit {
    fn weigh(&self, size: usize) -> usize {
        size
    }
}

impl<V> Memory<V>
where
    V: Clone,
{
    pub fn new() -> Self {
        Self {
            values: HashMap::new(),
            asked: Default::default(),
            limit: Limit::default(),
        }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    fn checked(&self) -> Result<()> {
        let limit = &self.limit;
        if limit.allows(self.len()) {
            Ok(())
        } else {
            Err(Error::Full { size: self.len(), limit: self.limit.0 })
        }
    }
}

impl<V> Named for Memory<V> {
    const NAME: &'static str = "memory";
}

impl<V: Clone + Send> Store for Memory<V> {
    type Value = V;

    fn get(&self, key: &str) -> Result<V> {
        self.asked.set(self.asked.get() + 1);
        let found = self.values.get(key).cloned();
        found.ok_or_else(|| Error::Missing(key.to_owned()))
    }

    fn put(&mut self, key: &str, value: V) -> Result<()> {
        self.checked()?;
        self.values.insert(key.into(), value);
        Ok(())
    }
}
