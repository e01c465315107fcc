/// Wie lang ein Wort ist.
pub fn größe(wort: &str) -> usize {
    zähle(wort.chars())
}

fn zähle(zeichen: impl Iterator<Item = char>) -> usize {
    zeichen.count()
}
