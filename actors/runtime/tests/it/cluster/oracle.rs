//! What an undisturbed run answers: a mock of its own, driven by hand, one sequence, no paging to speak of.

use engine::{Backend, SampleRequest, Slice, Token};
use mock::{END_TOKEN, MockBackend, MockConfig, Verify, no_sleep};
use runtime::Job;

/// The tokens of answer `index` to `job`.
pub(crate) fn expected(config: &MockConfig, job: &Job, index: u64) -> Vec<Token> {
    let mut config = config.clone();
    config.faults = mock::Faults::default();
    config.verify = Verify::Some(1);
    config.shape.blocks = 256;
    let blocks: Vec<u32> = (0..config.shape.blocks).collect();
    let mut backend = MockBackend::new(config, no_sleep()).unwrap();
    let mut sampling = job.sampling.clone();
    sampling.seed += index;
    let mut history = job.prompt.clone();
    let mut start = 0;
    while history.len() - job.prompt.len() < job.max_new as usize {
        let sample = SampleRequest {
            sampling: &sampling,
            history: &history,
            prompt_tokens: job.prompt.len(),
            forbid_end: job.ignore_eos,
        };
        let slice = Slice {
            tokens: &history[start..],
            start: u32::try_from(start).unwrap(),
            blocks: &blocks,
            sample: Some(sample),
        };
        let mut sampled = Vec::new();
        backend.step(&[slice], &mut sampled).unwrap();
        start = history.len();
        match *sampled[0].token.as_ref().unwrap() {
            END_TOKEN => break,
            token => history.push(token),
        }
    }
    history.split_off(job.prompt.len())
}
