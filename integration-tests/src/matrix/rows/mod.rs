//! The rows: each file has the cells of one, and their list.

use super::cell::Cell;

mod f13_prefill_killed;
mod f18_client_cut;
mod f18_link_cut;
mod f19_network_cut;

/// Rows of the matrix that have no cell, and why.
pub const NOT_HERE: &[(&str, &str)] = &[];

/// Every cell, in the order of the rows.
#[must_use]
pub fn all() -> Vec<Cell> {
    [f13_prefill_killed::CELLS,
        f18_client_cut::CELLS,
        f18_link_cut::CELLS,
        f19_network_cut::CELLS,
    ].concat()
}

/// Those whose ids begin so; all if nothing is given.
#[must_use]
pub fn chosen(prefixes: &[String]) -> Vec<Cell> {
    let mut cells = all();
    cells.retain(|cell| prefixes.is_empty() || prefixes.iter().any(|prefix| is_below(cell.id, prefix)));
    cells
}

/// `F1` is the row F1, not F13; `F13.pre` is the beginning of a cell's id.
fn is_below(id: &str, prefix: &str) -> bool {
    match prefix.contains('.') {
        true => id.starts_with(prefix),
        false => id == prefix || id.starts_with(&format!("{prefix}.")),
    }
}
