//! Numbers in memory: activations and scratch, aligned to cache lines so that no vector load straddles two.

use std::cell::RefCell;

/// Numbers in a cache line.
const LINE: usize = 16;
/// Bytes in a cache line.
const LINE_BYTES: usize = 64;

/// A row-major matrix of activations, one row a token. Grows as needed and keeps its memory.
#[derive(Default, Debug)]
pub struct Matrix {
    numbers: Aligned,
    rows: usize,
    width: usize,
}

impl Matrix {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Sets shape and contents; `numbers` holds whole rows of `width`.
    #[cfg(test)]
    pub(crate) fn set(&mut self, width: usize, numbers: &[f32]) {
        let rows = numbers.len().checked_div(width).unwrap_or(0);
        self.reshape(rows, width)
            .copy_from_slice(&numbers[..rows * width]);
    }

    /// Sets the shape and gives the numbers, whose values are of no meaning yet.
    pub(crate) fn reshape(&mut self, rows: usize, width: usize) -> &mut [f32] {
        (self.rows, self.width) = (rows, width);
        self.numbers.take(rows * width)
    }

    pub(crate) fn numbers(&self) -> &[f32] {
        self.numbers.get(self.rows * self.width)
    }

    pub(crate) fn numbers_mut(&mut self) -> &mut [f32] {
        self.numbers.take(self.rows * self.width)
    }

    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.numbers()[row * self.width..][..self.width]
    }
}

/// Numbers that start at a cache line.
#[derive(Default, Debug)]
pub(crate) struct Aligned {
    memory: Vec<f32>,
    start: usize,
}

impl Aligned {
    /// The first `len` numbers. They keep their values as long as no more are taken than ever before.
    pub(crate) fn take(&mut self, len: usize) -> &mut [f32] {
        if self.start + len > self.memory.len() {
            self.memory = vec![0.0; len + LINE - 1];
            self.start = self.memory.as_ptr().align_offset(LINE_BYTES).min(LINE - 1);
        }
        &mut self.memory[self.start..][..len]
    }

    /// The first `len` numbers; never more than were taken.
    pub(crate) fn get(&self, len: usize) -> &[f32] {
        &self.memory[self.start..][..len]
    }
}

/// Lends `len` numbers of no particular value that belong to the present thread. Not to be nested.
pub(crate) fn with_scratch<R>(len: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
    thread_local! {
        static SCRATCH: RefCell<Aligned> = RefCell::default();
    }
    SCRATCH.with_borrow_mut(|scratch| f(scratch.take(len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_start_at_a_cache_line() {
        let mut m = Matrix::default();
        assert_eq!((m.rows(), m.width(), m.numbers().len()), (0, 0, 0));
        for len in [6, 3, 600] {
            let numbers: Vec<f32> = (0..len * 3).map(|i| i as f32).collect();
            m.set(3, &numbers);
            assert_eq!((m.rows(), m.width()), (len, 3));
            assert_eq!(m.numbers(), numbers);
            assert_eq!(m.row(len - 1), &numbers[len * 3 - 3..]);
            assert_eq!(m.numbers().as_ptr().align_offset(LINE_BYTES), 0);
        }
    }
}
