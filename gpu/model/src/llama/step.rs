//! One step: the forward pass over a batch, then sampling.

use engine::{Attention, BackendError, Device, Gate, KvPool, Sampled, Slice, Span};

use super::{Layer, Linear, Llama, Reach, Scratch};

impl<D: Device> Llama<D> {
    /// Checks the batch, runs it, samples.
    pub(super) fn run(&mut self, batch: &[Slice<'_>], out: &mut Vec<Sampled>) -> Result<(), BackendError> {
        if batch.is_empty() {
            return Ok(());
        }
        for slice in batch {
            check(slice, self.spec.vocabulary, self.spec.context_tokens, &self.pool)?;
        }
        let tokens: Vec<_> = batch.iter().flat_map(|s| s.tokens).copied().collect();
        let spans = spans(batch);
        let s = &mut self.scratch;
        let shape = &self.shape;
        self.device
            .embed(&self.weights.embedding, &tokens, shape.embedding_scale, &mut s.x);
        for (index, layer) in self.weights.layers.iter().enumerate() {
            if self.interrupt.is_raised() {
                // Nobody wants the result; but the device must be done with the blocks before anyone else has them.
                return self.device.read(&mut s.x).map(|_| ());
            }
            let reach = shape.near.as_ref().filter(|_| layer.near).unwrap_or(&shape.far);
            let attention = Attention {
                layer: index,
                ..reach.attention.clone()
            };
            let place = Place {
                pool: &self.pool,
                attention: &attention,
                reach,
                epsilon: shape.epsilon,
                spans: &spans,
            };
            attend(&mut self.device, layer, &place, s);
            feed_forward(&mut self.device, layer, shape.epsilon, shape.gate, s);
        }
        self.sample(batch, &spans, out)
    }

    /// Logits of the last row of every slice that asks for a sample, and the samples. Also waits for the device where nothing is sampled:
    /// when a step has returned, its keys and values are in the pool.
    fn sample(
        &mut self,
        batch: &[Slice<'_>],
        spans: &[Span<'_>],
        out: &mut Vec<Sampled>,
    ) -> Result<(), BackendError> {
        let s = &mut self.scratch;
        let asking: Vec<_> = batch
            .iter()
            .zip(spans)
            .enumerate()
            .filter_map(|(i, (slice, span))| Some((i, span.row + span.rows - 1, slice.sample.as_ref()?)))
            .collect();
        let rows: Vec<_> = asking.iter().map(|&(_, row, _)| row).collect();
        if rows.is_empty() {
            self.device.select(&s.x, &[0], &mut s.h);
            return self.device.read(&mut s.h).map(|_| ());
        }
        self.device.select(&s.x, &rows, &mut s.a);
        self.device
            .rms_norm(&s.a, &self.weights.norm, self.shape.epsilon, &mut s.h);
        let head = self.weights.head.as_ref().unwrap_or(&self.weights.embedding);
        self.device.linear(&s.h, head, None, &mut s.logits);
        let logits = self.device.read(&mut s.logits)?;
        let vocabulary = self.shape.vocabulary;
        if logits.len() != rows.len() * vocabulary {
            let what = format!("{} logits for {} rows of {vocabulary}", logits.len(), rows.len());
            return Err(BackendError(what));
        }
        for ((slice, _, request), logits) in asking.into_iter().zip(logits.chunks_exact(vocabulary)) {
            // One that has none is no reason to fail the others.
            let (token, logprobs) = match self.sampler.sample(logits, request) {
                Ok((token, logprobs)) => (Ok(token), logprobs),
                Err(why) => (Err(why), None),
            };
            out.push(Sampled {
                slice,
                token,
                logprobs,
            });
        }
        Ok(())
    }
}

/// A wrong slice is the engine's mistake, but must not become a wild read of the device.
fn check(slice: &Slice<'_>, vocabulary: u32, context: u32, pool: &KvPool) -> Result<(), BackendError> {
    let shape = pool.shape();
    let end = slice.start as usize + slice.tokens.len();
    let wrong = |what: String| {
        Err(BackendError(format!(
            "a slice at position {}: {what}",
            slice.start
        )))
    };
    if slice.tokens.is_empty() {
        return wrong("no tokens".to_owned());
    }
    if end > context as usize {
        return wrong(format!("ends at {end}, behind the context of {context} tokens"));
    }
    if end > slice.blocks.len() * shape.block_tokens {
        return wrong(format!(
            "ends at {end}, behind its {} blocks of {}",
            slice.blocks.len(),
            shape.block_tokens
        ));
    }
    if let Some(token) = slice.tokens.iter().find(|&&t| t >= vocabulary) {
        return wrong(format!("token {token} is not in the vocabulary of {vocabulary}"));
    }
    match slice.blocks.iter().find(|&&b| b >= shape.blocks) {
        Some(block) => wrong(format!("block {block} is not in the pool of {}", shape.blocks)),
        None => Ok(()),
    }
}

/// Where each slice's rows are.
fn spans<'a>(batch: &[Slice<'a>]) -> Vec<Span<'a>> {
    let mut row = 0;
    let span = |slice: &Slice<'a>| {
        let span = Span {
            row,
            rows: slice.tokens.len(),
            start: slice.start,
            blocks: slice.blocks,
        };
        row += span.rows;
        span
    };
    batch.iter().map(span).collect()
}

/// Where attention looks, and how.
struct Place<'a> {
    pool: &'a KvPool,
    attention: &'a Attention,
    reach: &'a Reach,
    epsilon: f32,
    spans: &'a [Span<'a>],
}

/// `x += attention(norm(x))`; what is added is normed too where the model does that.
fn attend<D: Device>(
    device: &mut D,
    layer: &Layer<D::Weight>,
    place: &Place<'_>,
    s: &mut Scratch<D::Buffer>,
) {
    let &Place {
        pool,
        attention,
        epsilon,
        spans,
        ..
    } = place;
    device.rms_norm(&s.x, &layer.attention_norm, epsilon, &mut s.h);
    linear(device, &s.h, &layer.q, &mut s.q);
    linear(device, &s.h, &layer.k, &mut s.k);
    linear(device, &s.h, &layer.v, &mut s.v);
    turn(device, &mut s.q, layer.q_norm.as_ref(), place, &mut s.a);
    turn(device, &mut s.k, layer.k_norm.as_ref(), place, &mut s.a);
    device.store(pool, attention, spans, &s.k, &s.v);
    device.attend(pool, attention, spans, &s.q, &mut s.a);
    linear(device, &s.a, &layer.output, &mut s.h);
    add(device, layer.attended_norm.as_ref(), epsilon, s);
}

/// Norms the heads, where the model does, and gives them their positions. `spare` is overwritten.
fn turn<D: Device>(
    device: &mut D,
    x: &mut D::Buffer,
    norm: Option<&D::Weight>,
    place: &Place<'_>,
    spare: &mut D::Buffer,
) {
    if let Some(norm) = norm {
        device.rms_norm(x, norm, place.epsilon, spare);
        std::mem::swap(x, spare);
    }
    device.rope(x, place.attention.head_dim, place.spans, &place.reach.rope);
}

/// Adds a block's output to the residual stream, normed where the model does that.
fn add<D: Device>(device: &mut D, norm: Option<&D::Weight>, epsilon: f32, s: &mut Scratch<D::Buffer>) {
    if let Some(norm) = norm {
        device.rms_norm(&s.h, norm, epsilon, &mut s.a);
        std::mem::swap(&mut s.h, &mut s.a);
    }
    device.add(&mut s.x, &s.h);
}

fn linear<D: Device>(device: &mut D, x: &D::Buffer, linear: &Linear<D::Weight>, out: &mut D::Buffer) {
    device.linear(x, &linear.weight, linear.bias.as_ref(), out);
}

/// `x += down(act(gate(norm(x))) · up(norm(x)))`; what is added is normed too where the model does that.
fn feed_forward<D: Device>(
    device: &mut D,
    layer: &Layer<D::Weight>,
    epsilon: f32,
    act: Gate,
    s: &mut Scratch<D::Buffer>,
) {
    device.rms_norm(&s.x, &layer.ffn_norm, epsilon, &mut s.h);
    device.linear(&s.h, &layer.gate, None, &mut s.gate);
    device.linear(&s.h, &layer.up, None, &mut s.up);
    device.gate(&mut s.gate, &s.up, act);
    device.linear(&s.gate, &layer.down, None, &mut s.h);
    add(device, layer.fed_norm.as_ref(), epsilon, s);
}
