pub mod commands;
#[path = "naive.rs"]
mod naïve;

pub use key_store as store;
pub use naïve::größe;

/// What a program was told.
#[derive(Debug, Default)]
pub struct Options {
    pub verbose: bool,
    pub r#type: Option<String>,
}

impl From<&[String]> for Options {
    fn from(words: &[String]) -> Options {
        let mut options = Options::default();
        for word in words {
            options.take(word);
        }
        options
    }
}

impl Options {
    fn take(&mut self, word: &str) -> &mut Self {
        self.verbose |= word == "-v";
        self
    }
}

pub fn run(options: &Options) -> store::Result<usize> {
    use commands::{add, show};

    let cache = store::Cache::new(store::InMemory::<String>::new());
    let mut kept = store::InMemory::new();
    add::add(&mut kept, "a", größe("ä"))?;
    let policy = store::CachePolicy::newest();
    let cache = cache.with_policy(policy);
    if options.verbose {
        cache.fetch("a").map(|_| ())?;
    }
    Ok(show(&kept) + kept.len())
}
