//! The rows: each file has the cells of one, and their list.

use super::cell::Cell;

mod f01_lost_closes;
mod f02_early_aborts;
mod f03_stuck_prefill;
mod f04_no_grant;
mod f05_deadlines;
mod f06_disconnects;
mod f07_evicted;
mod f08_siblings;
mod f09_disorder;
mod f10_reads_fail;
mod f11_source_frozen;
mod f12_leases_and_reads;
mod f12b_reader_lost;
mod f13_prefill_killed;
mod f14_decode_killed;
mod f15_decode_frozen;
mod f16_gateway_killed;
mod f17_restarted;
mod f18_client_cut;
mod f18_link_cut;
mod f19_network_cut;
mod f20_abort_storm;
mod f21_cancelled_pulls;
mod f22_overload;
mod f23_prompt_limits;
mod f24_hostile;
mod f25_panics;
mod f26_terminated;
mod f27_rolling_restart;
mod f28_misfits;
mod f29_clock_steps;
mod f30_slow_readers;
mod f31_exhausted;
mod f32_nothing_to_pull;
mod f33_engine_blocked;
mod f34_idle_streams;

/// Rows of the matrix that have no cell, and why.
pub const NOT_HERE: &[(&str, &str)] = &[];

/// Every cell, in the order of the rows.
#[must_use]
pub fn all() -> Vec<Cell> {
    [
        f01_lost_closes::CELLS,
        f02_early_aborts::CELLS,
        f03_stuck_prefill::CELLS,
        f04_no_grant::CELLS,
        f05_deadlines::CELLS,
        f06_disconnects::CELLS,
        f07_evicted::CELLS,
        f08_siblings::CELLS,
        f09_disorder::CELLS,
        f10_reads_fail::CELLS,
        f11_source_frozen::CELLS,
        f12_leases_and_reads::CELLS,
        f12b_reader_lost::CELLS,
        f13_prefill_killed::CELLS,
        f14_decode_killed::CELLS,
        f15_decode_frozen::CELLS,
        f16_gateway_killed::CELLS,
        f17_restarted::CELLS,
        f18_client_cut::CELLS,
        f18_link_cut::CELLS,
        f19_network_cut::CELLS,
        f20_abort_storm::CELLS,
        f21_cancelled_pulls::CELLS,
        f22_overload::CELLS,
        f23_prompt_limits::CELLS,
        f24_hostile::CELLS,
        f25_panics::CELLS,
        f26_terminated::CELLS,
        f27_rolling_restart::CELLS,
        f28_misfits::CELLS,
        f29_clock_steps::CELLS,
        f30_slow_readers::CELLS,
        f31_exhausted::CELLS,
        f32_nothing_to_pull::CELLS,
        f33_engine_blocked::CELLS,
        f34_idle_streams::CELLS,
    ]
    .concat()
}

/// What the test command runs: the faults that matter most, of both kinds of clusters that cells share.
const SMOKE: [&str; 12] = [
    "F01.decoding",
    "F04.full",
    "F10.one",
    "F11.before",
    "F12.ends-during",
    "F13.prefilling",
    "F13.none-left",
    "F14.eight",
    "F14.none-left",
    "F15.eight",
    "F16.decoding",
    "F26.decode-decoding",
];

/// The twelve cells that the test command runs.
#[must_use]
pub fn smoke() -> Vec<Cell> {
    let mut cells = all();
    cells.retain(|cell| SMOKE.contains(&cell.id));
    cells
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The last row of the matrix.
    const LAST: u32 = 34;

    #[test]
    fn every_row_has_a_cell_or_a_reason() {
        let rows: Vec<&str> = all().iter().map(Cell::row).collect();
        let numbers = (1..=LAST).map(|row| format!("F{row:02}"));
        for row in numbers.chain(["F12b".to_owned()]) {
            let excused = NOT_HERE.iter().any(|(excused, _)| *excused == row);
            assert!(rows.contains(&row.as_str()) != excused, "{row}");
        }
    }

    #[test]
    fn ids_are_unique_and_the_smoke_subset_exists() {
        let cells = all();
        for (index, cell) in cells.iter().enumerate() {
            assert!(
                !cells[..index].iter().any(|other| other.id == cell.id),
                "{}",
                cell.id
            );
        }
        assert_eq!(smoke().len(), SMOKE.len());
    }

    #[test]
    fn a_row_is_chosen_without_its_namesakes() {
        let ids = |prefix: &str| {
            let cells = chosen(&[prefix.to_owned()]);
            cells.iter().map(|cell| cell.id).collect::<Vec<_>>()
        };
        assert!(ids("F12").iter().all(|id| id.starts_with("F12.")));
        assert_eq!(ids("F13.none-left"), ["F13.none-left"]);
        assert!(ids("F1").is_empty());
    }
}
