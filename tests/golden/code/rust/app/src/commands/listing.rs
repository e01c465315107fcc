use key_store::InMemory;
use std::fmt::Write as _;

pub fn show(memory: &InMemory<usize>) -> usize {
    let mut text = String::new();
    let shown = Shown { memory };
    write!(text, "{}", shown.lines()).unwrap();
    text.len()
}

struct Shown<'a> {
    memory: &'a InMemory<usize>,
}

impl<'a> Shown<'a> {
    fn lines(&self) -> usize {
        self.memory.len()
    }
}
