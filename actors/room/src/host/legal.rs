//! Which message of an owner fits which phase of a stay. Listed once, here.
//!
//! A message that does not fit changes nothing, is counted, and gets no answer: the owner takes a refusal for the
//! proof that nothing is held here, and something is.

use crate::host::input::FromOwner;
use crate::host::stay::StayPhase;

/// What to do with a message about a stay that is here.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Verdict {
    /// Act on it.
    Act,
    /// Its effect is there already: count it.
    Duplicate,
    /// It can never fit here: count it.
    OutOfOrder,
    /// The attempt is over: count it.
    Stale,
}

/// Whether `message` fits a stay in `phase`.
pub(super) fn judge(phase: StayPhase, message: &FromOwner) -> Verdict {
    use FromOwner as M;
    use StayPhase as P;
    use Verdict as V;
    match (phase, message) {
        (_, M::Close) => V::Act,
        (P::Closing, M::Release) => V::Act,
        (P::Closing, _) => V::Stale,
        (_, M::Reserve(_)) => V::Duplicate,
        (_, M::Allow { .. }) => V::Act,

        (P::Reserved, M::Prefill(_) | M::Pull { .. }) => V::Act,
        (P::Prefilling | P::Published, M::Prefill(_)) => V::Duplicate,
        (P::Pulling, M::Pull { .. }) if planted!(DuplicatePullReads) => V::Act,
        (P::Pulling | P::Decoding, M::Pull { .. }) => V::Duplicate,
        // A mixed worker's stay decodes without a pull, so this Prefill may be its own.
        (P::Decoding, M::Prefill(_)) => V::Duplicate,

        (P::Prefilling | P::Published, M::Release) => V::Act,
        (P::Reserved | P::Pulling | P::Decoding, M::Release) => V::OutOfOrder,
        (P::Prefilling | P::Published, M::Pull { .. }) => V::OutOfOrder,
        (P::Pulling, M::Prefill(_)) => V::OutOfOrder,
    }
}
