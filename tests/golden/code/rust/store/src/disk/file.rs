use std::path::Path;

use super::Folder;
use crate::error::Error::{self, Missing};

pub(super) struct Handle {
    raw: Raw,
}

/// Two ways to see the same bytes.
#[repr(C)]
union Raw {
    number: u64,
    bytes: [u8; 8],
}

impl Handle {
    pub(super) fn open(path: &Path) -> Result<Handle, Error> {
        let raw = Raw { number: path.as_os_str().len() as u64 };
        Ok(Self { raw })
    }

    pub fn read(&self, key: &str) -> crate::Result<String> {
        let number = unsafe { self.raw.first() };
        match number {
            0 => Err(Missing(key.into())),
            number => Ok(number.to_string()),
        }
    }

    pub fn sync(&self) {
        crate::system::flush()
    }
}

impl Raw {
    unsafe fn first(&self) -> u8 {
        self.bytes[0]
    }
}

// An inherent impl of a type that another file defines.
impl Folder {
    pub fn is_open(&self) -> bool {
        self.handle_count() > 0
    }

    fn handle_count(&self) -> usize {
        0
    }
}
