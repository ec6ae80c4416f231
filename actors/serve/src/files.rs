//! File descriptors: as many as the system lets this process have, of which clients cannot take all.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Kept, where there are so many, for what is not a client: operators, links, files, UCX.
const KEPT: usize = 256;

/// Raises the soft limit to the hard one.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if current != maximum && setrlimit(Resource::Nofile, raised).is_err() {
        tracing::debug!(?current, ?maximum, "the limit on open files stays");
    }
}

/// How many of `most` connections the doors may take.
pub(crate) fn connections(most: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    within(most, limit.and_then(|limit| usize::try_from(limit).ok()))
}

fn within(most: usize, files: Option<usize>) -> usize {
    let spare = |files: usize| files - KEPT.min(files / 2);
    files.map_or(most, |files| most.min(spare(files)).max(1))
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn some_files_are_always_left() {
        assert_eq!(within(8_192, None), 8_192);
        assert_eq!(within(8_192, Some(20_000)), 8_192);
        assert_eq!(within(8_192, Some(1_024)), 768);
        assert_eq!(within(8_192, Some(64)), 32);
        assert_eq!(within(8_192, Some(1)), 1);
    }
}
