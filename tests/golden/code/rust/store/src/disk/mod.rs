//! Values in files.

mod file;

use std::path::{Path, PathBuf};

use self::file::Handle;
use crate::system as sys;
use crate::{error, Result, Store};

/// A folder with one file for each key.
pub struct Folder {
    path: PathBuf,
    handle: Option<Handle>,
}

impl Folder {
    pub fn at(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_path_buf();
        Folder { path, handle: None }
    }

    pub fn opened(mut self) -> Result<Self> {
        let handle = Handle::open(&self.path)?;
        handle.sync();
        self.handle = Some(handle);
        Ok(self)
    }

    fn read(&self, key: &str) -> Result<String> {
        if let Some(handle) = &self.handle {
            handle.sync();
        }
        let Some(handle) = self.handle.as_ref() else {
            return Err(error::Error::Closed);
        };
        let read = handle.read(key)?;
        Ok(read.trim().to_owned())
    }
}

impl crate::Named for Folder {
    const NAME: &'static str = <super::InMemory<u8> as crate::Named>::NAME;
}

impl Store for Folder {
    type Value = String;

    fn get(&self, key: &str) -> Result<String> {
        self.read(key)
    }

    fn put(&mut self, _: &str, value: String) -> Result<()> {
        let size = sys::page_size();
        match value.len() {
            len if len > size => Err(error::Error::Full { size: len, limit: size }),
            _ => Ok(()),
        }
    }
}
