//! Two ends of one thing.

use std::ops::{Deref, DerefMut};

pub struct Writer(Inner);

pub struct Reader {
    inner: Inner,
}

#[derive(Clone, Default)]
pub struct Inner {
    words: Vec<String>,
}

impl Inner {
    fn add(&mut self, word: &str) -> usize {
        self.words.push(word.to_owned());
        self.words.len()
    }

    fn last(&self) -> Option<&String> {
        self.words.last()
    }
}

// Whoever has a writer has what is in it.
impl Deref for Writer {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl DerefMut for Writer {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Reader {
    /// A method that is called as its field.
    fn inner(&self) -> &Inner {
        &self.inner
    }

    fn r#final(&self) -> Option<&String> {
        self.inner().last()
    }
}

pub fn pair() -> (Writer, Reader) {
    let inner = Inner::default();
    (Writer(inner.clone()), Reader { inner })
}

impl Writer {
    fn opened(words: &[&str]) -> std::io::Result<(Self, usize)> {
        let (mut writer, _) = pair();
        for word in words {
            writer.add(word);
        }
        Ok((writer, words.len()))
    }
}

pub(crate) fn both() -> bool {
    let (mut writer, reader) = pair();
    writer.add("a");
    let Ok((opened, _count)) = Writer::opened(&["b"]) else {
        return false;
    };
    let pair = pair();
    if let Some(last) = opened.last() {
        return last == "b" && pair.0.last().is_none();
    }
    match reader.r#final() {
        Some(word) => !word.is_empty(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::both;

    #[test]
    fn both_ends_are_there() {
        let both: bool = both();
        assert!(both, "{}", both as u8);
    }
}
