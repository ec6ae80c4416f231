use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn request<'a>(sampling: &'a Sampling, history: &'a [Token]) -> SampleRequest<'a> {
    SampleRequest {
        sampling,
        history,
        prompt_tokens: 1,
        forbid_end: false,
    }
}

fn sample(logits: &[f32], sampling: &Sampling, history: &[Token]) -> Token {
    Sampler::new(vec![0])
        .sample(logits, &request(sampling, history))
        .unwrap()
        .0
}

/// How often each token is drawn over many positions.
fn draws(logits: &[f32], sampling: &Sampling) -> BTreeMap<Token, u32> {
    let mut sampler = Sampler::new(vec![]);
    let mut counts = BTreeMap::new();
    for seed in 0..4000 {
        let sampling = Sampling {
            seed,
            ..sampling.clone()
        };
        *counts
            .entry(sampler.sample(logits, &request(&sampling, &[9])).unwrap().0)
            .or_default() += 1;
    }
    counts
}

fn hot() -> Sampling {
    Sampling {
        temperature: 1.0,
        ..Sampling::default()
    }
}

/// Logits of these probabilities.
fn logits(probabilities: &[f32]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln() + 3.0).collect()
}

#[test]
fn greedy_takes_the_highest_and_of_equals_the_lowest_id() {
    let check =
        |logits: &[f32], token| assert_eq!(sample(logits, &Sampling::default(), &[]), token, "{logits:?}");
    check(&[1.0, 3.0, 2.0], 1);
    check(&[1.0, 3.0, 3.0], 1);
    check(&[-0.0, 0.0], 0);
    check(&[f32::NEG_INFINITY, -5.0], 1);
}

#[test]
fn what_is_no_finite_number_is_an_error_and_so_is_nothing() {
    for logits in [
        &[1.0, f32::NAN][..],
        &[1.0, f32::INFINITY],
        &[f32::NEG_INFINITY; 2],
        &[],
    ] {
        for sampling in [Sampling::default(), hot()] {
            assert!(
                Sampler::new(vec![])
                    .sample(logits, &request(&sampling, &[]))
                    .is_err(),
                "{logits:?}"
            );
        }
    }
}

#[test]
fn no_wish_makes_sampling_fail() {
    const EXTREMES: [f32; 8] = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        0.0,
        1e-30,
        2.0,
    ];
    let set: [fn(&mut Sampling, f32); 5] = [
        |s, x| s.temperature = x,
        |s, x| s.top_p = x,
        |s, x| s.min_p = x,
        |s, x| s.presence_penalty = x,
        |s, x| s.frequency_penalty = x,
    ];
    let history = [0, 1, 1, 2, 3];
    for (one, other) in (0..set.len()).flat_map(|i| (0..set.len()).map(move |j| (i, j))) {
        for (x, y) in EXTREMES.into_iter().flat_map(|x| EXTREMES.map(move |y| (x, y))) {
            let mut sampling = Sampling { top_k: 3, ..hot() };
            set[one](&mut sampling, x);
            set[other](&mut sampling, y);
            let token = sample(&[0.5, -2.0, f32::NEG_INFINITY, 1.5], &sampling, &history);
            assert!(token != 2 && token < 4, "{sampling:?}: {token}");
        }
    }
}

#[test]
fn end_tokens_are_not_sampled_when_forbidden() {
    let mut sampler = Sampler::new(vec![0, 2]);
    for sampling in [Sampling::default(), hot()] {
        let request = SampleRequest {
            forbid_end: true,
            ..request(&sampling, &[])
        };
        assert_eq!(sampler.sample(&[9.0, -9.0, 9.0], &request).unwrap().0, 1);
    }
}

#[test]
fn penalties_count_generated_tokens_only() {
    let check = |presence, frequency, history: &[Token], token| {
        let sampling = Sampling {
            presence_penalty: presence,
            frequency_penalty: frequency,
            ..Sampling::default()
        };
        assert_eq!(
            sample(&[0.0, 3.0, 2.0, 1.0], &sampling, history),
            token,
            "{history:?}"
        );
    };
    check(2.0, 0.0, &[1], 1);
    check(2.0, 0.0, &[0, 1], 2);
    check(2.0, 0.0, &[0, 1, 1, 2], 1);
    check(0.0, 0.6, &[0, 1], 1);
    check(0.0, 0.6, &[0, 1, 1], 2);
    check(0.0, -9.0, &[0, 3], 3);
}

#[test]
fn draws_follow_the_distribution() {
    let counts = draws(&logits(&[0.5, 0.3, 0.2]), &hot());
    for (token, p) in [(0, 0.5), (1, 0.3), (2, 0.2)] {
        let seen = f64::from(counts[&token]) / 4000.0;
        assert!((seen - p).abs() < 0.03, "token {token}: {seen}");
    }
    // Twice as cold squares the odds: 25 : 9 : 4.
    let cold = draws(
        &logits(&[0.5, 0.3, 0.2]),
        &Sampling {
            temperature: 0.5,
            ..hot()
        },
    );
    assert!((f64::from(cold[&0]) / 4000.0 - 25.0 / 38.0).abs() < 0.03);
}

#[test]
fn filters_keep_what_they_say() {
    let check = |sampling: Sampling, kept: &[Token]| {
        let drawn: Vec<_> = draws(&logits(&[0.1, 0.4, 0.3, 0.2]), &sampling)
            .into_keys()
            .collect();
        assert_eq!(drawn, kept, "{sampling:?}");
    };
    check(hot(), &[0, 1, 2, 3]);
    check(Sampling { top_k: 1, ..hot() }, &[1]);
    check(Sampling { top_k: 3, ..hot() }, &[1, 2, 3]);
    check(Sampling { top_p: 0.0, ..hot() }, &[1]);
    check(Sampling { top_p: 0.39, ..hot() }, &[1]);
    check(Sampling { top_p: 0.6, ..hot() }, &[1, 2]);
    check(Sampling { top_p: 0.95, ..hot() }, &[0, 1, 2, 3]);
    check(Sampling { min_p: 0.6, ..hot() }, &[1, 2]);
    check(Sampling { min_p: 1.0, ..hot() }, &[1]);
    // top_p looks at what top_k left: 0.4 of 0.7 is enough for 0.5.
    check(
        Sampling {
            top_k: 2,
            top_p: 0.5,
            ..hot()
        },
        &[1],
    );
    check(
        Sampling {
            top_k: 2,
            top_p: 0.6,
            ..hot()
        },
        &[1, 2],
    );
}

#[test]
fn logprobs_are_of_the_distribution_before_the_filters() {
    let sampling = Sampling {
        top_k: 1,
        presence_penalty: 1.0,
        logprobs: Some(2),
        ..hot()
    };
    let (token, found) = Sampler::new(vec![])
        .sample(&logits(&[0.2, 0.5, 0.3]), &request(&sampling, &[1]))
        .unwrap();
    let found = found.unwrap();
    assert_eq!(
        (token, found.top.iter().map(|t| t.0).collect::<Vec<_>>()),
        (1, vec![1, 2])
    );
    for (logprob, p) in [
        (found.sampled, 0.5_f32),
        (found.top[0].1, 0.5),
        (found.top[1].1, 0.3),
    ] {
        assert!((logprob - p.ln()).abs() < 1e-5);
    }
}

/// `top_p` as its definition reads: sort everything, walk.
fn nucleus(logits: &[f32], p: f32) -> Vec<Token> {
    let max = logits.iter().copied().fold(f32::MIN, f32::max);
    let mut all: Vec<_> = (0..)
        .zip(logits.iter().map(|&l| (l, f64::from(l - max).exp())))
        .collect();
    all.sort_by(|a: &(Token, (f32, f64)), b| b.1.0.total_cmp(&a.1.0).then(a.0.cmp(&b.0)));
    let enough = f64::from(p) * logits.iter().map(|&l| f64::from(l - max).exp()).sum::<f64>();
    let mut sum = 0.0;
    let last = all.iter().position(|c| {
        sum += c.1.1;
        sum >= enough
    });
    all[..=last.unwrap_or(all.len() - 1)]
        .iter()
        .map(|c| c.0)
        .collect()
}

proptest! {
    #[test]
    fn the_same_question_has_the_same_answer(
        logits in prop::collection::vec(-9.0_f32..9.0, 1..2000), seed: u64, top_p in 0.0_f32..1.1, top_k in 0_u32..50, min_p in 0.0_f32..1.0,
    ) {
        let sampling = Sampling { seed, top_p, top_k, min_p, ..hot() };
        let mut used = Sampler::new(vec![]);
        let first = used.sample(&logits, &request(&sampling, &[1, 2])).unwrap();
        prop_assert_eq!(&used.sample(&logits, &request(&sampling, &[3, 4])).unwrap(), &first);
        prop_assert_eq!(Sampler::new(vec![]).sample(&logits, &request(&sampling, &[1, 2])).unwrap(), first);
    }

    #[test]
    fn top_p_never_leaves_the_nucleus(logits in prop::collection::vec(-3.0_f32..3.0, 1..3000), seed: u64, top_p in 0.0_f32..1.0) {
        let sampling = Sampling { seed, top_p, ..hot() };
        prop_assert!(nucleus(&logits, top_p).contains(&sample(&logits, &sampling, &[1])));
    }
}
