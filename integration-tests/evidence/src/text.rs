//! Figures and tables as Markdown.

use std::fmt::Write as _;

/// A number with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The same of how many there are.
pub(crate) fn len(number: usize) -> String {
    count(number as u64)
}

/// A length in hours or seconds: with one decimal while that says something.
pub(crate) fn decimal(number: f64) -> String {
    if number.abs() < 1_000.0 {
        return format!("{number:.1}");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no length of time here is negative, or that long"
    )]
    count(number.round().max(0.0) as u64)
}

/// Milliseconds, or a dash.
pub(crate) fn ms(time: Option<u64>) -> String {
    time.map_or_else(|| "-".to_owned(), count)
}

/// A part of a whole in percent, rounded down, so that only all is 100.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let tenths = part.saturating_mul(1_000) / whole;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").replace('|', "\\|")
}

/// A table, and an empty line after it.
pub(crate) fn table(out: &mut String, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    // Writing to a String does not fail.
    let _ = writeln!(out, "| {} |", head.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(head.len()));
    for row in rows {
        let row: Vec<String> = row.iter().map(|text| cell(text)).collect();
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out.push('\n');
}

/// A paragraph, and an empty line after it.
pub(crate) fn paragraph(out: &mut String, text: &str) {
    let _ = write!(out, "{text}\n\n");
}

#[cfg(test)]
mod tests {
    use super::{count, decimal, percent, table};

    #[test]
    fn numbers_are_readable() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(count(number), text);
        }
        assert_eq!(
            [decimal(0.84), decimal(999.94), decimal(2_016.7)],
            ["0.8", "999.9", "2,017"]
        );
        assert_eq!(
            [
                percent(999, 1_000),
                percent(9_999, 10_000),
                percent(3, 3),
                percent(0, 0)
            ],
            ["99.9 %", "99.9 %", "100.0 %", "-"]
        );
    }

    #[test]
    fn nothing_breaks_out_of_its_cell() {
        let mut out = String::new();
        table(
            &mut out,
            &["a", "b"],
            [vec!["x | y".to_owned(), "two\n lines".to_owned()]],
        );
        assert_eq!(out, "| a | b |\n|---|---|\n| x \\| y | two lines |\n\n");
    }
}
