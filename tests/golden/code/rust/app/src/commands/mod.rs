pub mod add;
pub(crate) mod listing;

pub use listing::show;
