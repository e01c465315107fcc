//! What the system below offers.

extern crate std as base;

use base::os::raw::c_int;

extern "C" {
    /// Of the C library.
    fn getpagesize() -> c_int;
    static environ: *const *const u8;
}

/// How large a page is.
pub fn page_size() -> usize {
    // SAFETY: it takes nothing and always gives a number.
    unsafe { getpagesize() as usize }
}

#[no_mangle]
pub unsafe extern "C" fn store_flush(_: c_int) -> c_int {
    flush();
    0
}

pub fn flush() {
    let twice = |times: usize| -> usize { times * page_size() };
    twice(2);
    each::<_, 2>(3, twice);
}

fn each<F, const N: usize>(_: usize, _made: F) -> [usize; N]
where
    F: Fn(usize) -> usize,
{
    fn nested(size: usize) -> usize {
        size
    }
    [nested(1); N]
}
