//! All randomness of a simulation: streams that follow from its seed, one for each use, so that a use which draws more (or a node that
//! is dead and draws nothing) changes no other.

use rand::SeedableRng;
use rand::rngs::StdRng;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A stream of random numbers.
pub(crate) type Random = StdRng;

/// The stream of `seed` that is called so.
#[must_use]
pub(crate) fn stream(seed: u64, name: &str) -> Random {
    StdRng::seed_from_u64(xxh3_64_with_seed(name.as_bytes(), seed))
}
