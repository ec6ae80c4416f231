//! The CPU device: kernels over quantised weights and a paged KV pool.
