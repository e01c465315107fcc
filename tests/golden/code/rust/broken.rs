//! A file that is being written.

use std::{fmt, io

/// Still fine.
pub fn whole(value: u8) -> u8 { value.min(3) }

pub struct Half {
    name: String,
    other: 

impl Half {
    fn call(&self) { self.name.len(; whole(1 }

fn after() { whole(2); }
