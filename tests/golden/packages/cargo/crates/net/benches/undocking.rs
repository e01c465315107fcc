//! One of the files of a crate.
