//! What an undisturbed run answers.

use engine::Token;
use mock::MockConfig;
use runtime::Job;

/// The tokens of answer `index` to `job`.
pub(crate) fn expected(config: &MockConfig, job: &Job, index: u64) -> Vec<Token> {
    let mut sampling = job.sampling.clone();
    sampling.seed += index;
    mock::undisturbed(config, &job.prompt, &sampling, job.max_new, job.ignore_eos)
}
