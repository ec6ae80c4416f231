//! Weights, tokenizer, chat template, sampler and architectures: tokens to logits.
