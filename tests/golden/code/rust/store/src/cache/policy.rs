use self::Order::{Newest, Oldest as First};

/// Which value has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Newest = 1,
    Oldest,
}

#[derive(Clone, Debug)]
pub struct Policy {
    pub order: Order,
    pub(super) most: usize,
    pub(in crate::cache) least: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { order: First, most: super::super::CAPACITY, least: 0 }
    }
}

impl Policy {
    pub fn newest() -> Self {
        Policy { order: Newest, ..Policy::default() }
    }

    pub(super) fn wants(&self, size: usize) -> bool {
        (self.least..self.most).contains(&size)
    }

    pub(super) async fn settle(&self) -> Policy {
        let settled = async { self.clone() };
        settled.await
    }
}
