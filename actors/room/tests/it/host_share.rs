//! What others find here of a sequence: what is computed, and is what its name says.

use room::{BlockHash, EngineInput, Finish, FromOwner, Job};

use crate::host_kit::{FIRST_TOKEN, Worker, attempt, check, job};

#[test]
fn what_is_not_computed_yet_is_not_shared() {
    let mut w = Worker::new(false);
    w.owner(attempt(1, 1), FromOwner::Prefill(job(1, 9)));
    for (seq, positions, answer) in [
        (2, 3, "tell 2#1: Reserved, 0 cached"),
        (3, 4, "tell 3#1: Reserved, 1 cached"),
    ] {
        w.engine(attempt(1, 1), EngineInput::Computed { positions });
        check(
            &w.owner(attempt(seq, 1), FromOwner::Reserve(job(1, 9))),
            &[answer],
        );
    }
}

/// A block that the prompt does not fill ends with tokens of the answer, and no name given with the prompt is its own.
#[test]
fn a_block_that_the_prompt_does_not_fill_has_no_name() {
    let mut w = Worker::new(true);
    let a = attempt(1, 1);
    let work = Job {
        hashes: [1, 2, 3].map(BlockHash).to_vec(),
        ..job(1, 9)
    };
    w.owner(a, FromOwner::Reserve(work.clone()));
    w.owner(a, FromOwner::Prefill(work));
    w.engine(a, FIRST_TOKEN);
    w.engine(a, EngineInput::Computed { positions: 12 });
    w.engine(
        a,
        EngineInput::Sampled {
            count: 3,
            finish: Some(Finish::Stop),
        },
    );
    assert_eq!(w.blocks(), "10/0/2/0");
}
