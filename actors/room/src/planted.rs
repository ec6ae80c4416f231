//! Where a bug of the crate `planted` stands in this one: for tests that must find it.

/// Whether this bug is planted, and where it is only in some cases, whether this is one: constantly `false` but in a build with the
/// feature `planted`.
#[cfg(feature = "planted")]
macro_rules! planted {
    ($bug:ident) => {
        ::planted::is(::planted::Bug::$bug)
    };
    ($bug:ident if $where:expr) => {
        $where && ::planted::is(::planted::Bug::$bug)
    };
}

/// Whether this bug is planted: constantly `false` but in a build with the feature `planted`.
#[cfg(not(feature = "planted"))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
    ($bug:ident if $where:expr) => {
        false && $where
    };
}
