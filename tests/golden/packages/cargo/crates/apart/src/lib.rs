//! It has a workspace of its own.
