//! A store before another one.

mod policy;

pub use policy::Policy;

use crate::{Result, Store};
use std::sync::{Arc, Mutex};

type Shared<T> = Arc<Mutex<T>>;

/// Remembers what the store behind it gave.
pub struct Cache<S: Store> {
    behind: S,
    policy: Policy,
    hits: Shared<Hits>,
}

#[derive(Default)]
struct Hits {
    count: u32,
}

impl Hits {
    fn count_one(&mut self) {
        self.count += 1;
    }
}

impl<S> Cache<S>
where
    S: Store,
{
    pub const DEFAULT_SIZE: usize = crate::CAPACITY / 2;

    pub fn new(behind: S) -> Cache<S> {
        Cache { behind, policy: Policy::default(), hits: Arc::new(Mutex::new(Hits::default())) }
    }

    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    pub fn fetch(&self, key: &str) -> Result<S::Value> {
        self.hits.lock().unwrap().count_one();
        let policy = &self.policy;
        if policy.wants(Self::DEFAULT_SIZE) {
            self.behind.get(key)
        } else {
            <S as Store>::get(&self.behind, key)
        }
    }

    /// Waits until the policy is content.
    pub async fn settled(&self) -> Policy {
        self.policy.settle().await
    }
}
