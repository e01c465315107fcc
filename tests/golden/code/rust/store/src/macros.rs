/// Counts up.
macro_rules! counted {
    ($counter:expr) => {
        $counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    };
}

macro_rules! only_fast {
    ($($item:item)*) => {
        $(
            #[cfg(not(feature = "slow"))]
            $item
        )*
    };
}

/// Makes a store with what is given.
#[macro_export]
macro_rules! store {
    ($($key:expr => $value:expr),* $(,)?) => {{
        let mut made = $crate::InMemory::new();
        $( $crate::Store::put(&mut made, $key, $value).unwrap(); )*
        made
    }};
}
