//! What `top` looks like: a pure function of its state. Made for 80 columns and 24 lines; what is larger shows more.

use observe::explain::lasting;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Sparkline, Table, TableState, Wrap};

use super::keys::HELP;
use super::state::{Order, State};
use crate::admin::WorkerRow;
use crate::explain;

/// A worker that has reported nothing for this long is shown as silent.
const SILENT_MS: u64 = 1_000;

/// Lines that workers get at most, of a small screen.
const WORKERS: u16 = 6;

/// Columns from which on workers are shown with their admin listeners.
const WIDE: u16 = 104;

pub(super) fn draw(frame: &mut Frame<'_>, state: &State) {
    let workers = u16::try_from(state.overview.workers.len()).unwrap_or(u16::MAX);
    let most = WORKERS.max(frame.area().height / 4);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(3),
        Constraint::Length(workers.clamp(1, most) + 1),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .split(frame.area());
    head(frame, areas[0], state);
    figures(frame, areas[1], state);
    phases(frame, areas[2], state);
    table_of_workers(frame, areas[3], state);
    table_of_rooms(frame, areas[4], state);
    foot(frame, areas[5], state);
    if state.opened.is_some() {
        account(frame, state);
    }
    if state.help {
        help(frame);
    }
}

fn head(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let glance = &state.overview;
    let verdict = match (&state.lost, &glance.not_ready) {
        (Some(why), _) => Span::from(format!(" no answer: {why} ")).white().on_red(),
        (None, Some(why)) => Span::from(format!(" not serving: {why} ")).white().on_red(),
        (None, None) => Span::from(" serving ").black().on_green(),
    };
    let name = format!(" {} ", glance.gateway);
    let about = format!(" {}, up {}", glance.model, lasting(glance.uptime_s * 1_000));
    let paused = if state.paused { " paused " } else { "" };
    let line = Line::from(vec![
        Span::from(name).bold(),
        verdict,
        Span::from(about),
        Span::from(paused).black().on_yellow(),
    ]);
    frame.render_widget(line, area);
}

fn figures(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let minute = &state.overview.last_minute;
    let millis = |value: Option<f64>| {
        value.map_or_else(
            || "-".to_owned(),
            |ms| match ms {
                0.0..10.0 => format!("{ms:.1} ms"),
                10.0..10_000.0 => format!("{ms:.0} ms"),
                _ => format!("{:.1} s", ms / 1_000.0),
            },
        )
    };
    let wrong = minute.failed + minute.expired;
    let (first, between) = (&minute.first_token, &minute.between_tokens);
    let lines = vec![
        Line::from(format!(
            "rooms {:<6} waiting {:<5} requests {:.1}/s  tokens {:.0}/s",
            state.overview.rooms_open, state.overview.rooms_waiting, minute.opened_per_s, minute.tokens_per_s
        )),
        Line::from(format!(
            "first token     half {:<9} 99 % {}",
            millis(first.p50_ms),
            millis(first.p99_ms)
        )),
        Line::from(format!(
            "between tokens  half {:<9} 99 % {}",
            millis(between.p50_ms),
            millis(between.p99_ms)
        )),
        Line::from(vec![
            Span::from(format!(
                "last minute  {} completed, {} aborted, ",
                minute.completed, minute.aborted
            )),
            Span::styled(format!("{wrong} failed or expired"), bad(wrong > 0)),
        ]),
    ];
    let areas = Layout::horizontal([Constraint::Length(62), Constraint::Min(10)]).split(area);
    frame.render_widget(Paragraph::new(lines), areas[0]);
    let parts = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).split(areas[1]);
    frame.render_widget(Line::from("tokens/s").dim(), parts[0]);
    let tokens = &state.overview.series.tokens;
    let first = tokens.len().saturating_sub(parts[1].width.into());
    let shown = tokens.iter().skip(first).map(|count| u64::from(*count));
    frame.render_widget(
        Sparkline::default()
            .data(shown)
            .style(Style::new().fg(Color::Cyan)),
        parts[1],
    );
}

fn phases(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let phases = &state.overview.phases;
    let share = u32::try_from(phases.len().max(1)).unwrap_or(1);
    let areas = Layout::horizontal(phases.iter().map(|_| Constraint::Ratio(1, share))).split(area);
    for (phase, area) in phases.iter().zip(areas.iter()) {
        let oldest = match phase.rooms {
            0 => String::new(),
            _ => lasting(phase.oldest_ms),
        };
        let lines = vec![
            Line::from(phase.phase.clone()).fg(colour(&phase.phase)),
            Line::from(phase.rooms.to_string()).bold(),
            Line::from(oldest).dim(),
        ];
        frame.render_widget(Paragraph::new(lines), *area);
    }
}

fn table_of_workers(frame: &mut Frame<'_>, area: Rect, state: &State) {
    if state.overview.workers.is_empty() {
        let none = "no worker is linked: innkeeper worker --role mixed --gateway ADDR";
        return frame.render_widget(Line::from(none).red(), area);
    }
    let is_wide = area.width >= WIDE;
    let rows = state.overview.workers.iter().map(|row| worker(row, is_wide));
    let mut widths = vec![
        Constraint::Min(14),
        Constraint::Length(7),
        Constraint::Length(12),
        Constraint::Length(15),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(9),
    ];
    let mut head = vec!["WORKER", "ROLE", "POOL", "LEASED", "SLOTS", "BACKLOG", "STATE"];
    if is_wide {
        widths.push(Constraint::Length(21));
        head.push("ADMIN");
    }
    let head = Row::new(head).dim();
    frame.render_widget(Table::new(rows, widths).header(head).column_spacing(1), area);
}

fn worker(worker: &WorkerRow, is_wide: bool) -> Row<'static> {
    let silent = worker.heard_ms_ago.filter(|ms| *ms >= SILENT_MS);
    let (word, style) = match (silent, worker.draining, worker.blocks_quarantined) {
        (Some(_), ..) => ("silent", Style::new().red().bold()),
        (None, true, _) => ("draining", Style::new().yellow()),
        (None, false, 0) => ("ok", Style::new().green()),
        (None, false, _) => ("quarant.", Style::new().yellow()),
    };
    let mut cells = vec![
        Cell::from(worker.name.clone()),
        Cell::from(worker.role.clone()),
        Cell::from(bar(worker)),
        Cell::from(format!("{}/{}", worker.blocks_leased, worker.blocks_total)),
        Cell::from(format!("{}/{}", worker.slots_used, worker.slots_total)),
        Cell::from(worker.prefill_backlog_tokens.to_string()),
        Cell::from(Span::styled(word, style)),
    ];
    if is_wide {
        cells.push(Cell::from(worker.admin.clone().unwrap_or_else(|| "-".to_owned())));
    }
    Row::new(cells)
}

/// A pool of ten places: leased, in quarantine, cached, free.
fn bar(worker: &WorkerRow) -> Line<'static> {
    const PLACES: u64 = 10;
    let total = u64::from(worker.blocks_total.max(1));
    // Whatever is there is seen: it is rounded up.
    let places = |blocks: u32| (u64::from(blocks) * PLACES).div_ceil(total);
    let leased = places(worker.blocks_leased).min(PLACES);
    let quarantined = places(worker.blocks_quarantined).min(PLACES - leased);
    let cached = places(worker.blocks_cached).min(PLACES - leased - quarantined);
    let free = PLACES - leased - quarantined - cached;
    let run = |sign: &str, count: u64| sign.repeat(usize::try_from(count).unwrap_or(0));
    Line::from(vec![
        Span::from("["),
        Span::from(run("#", leased)).blue(),
        Span::from(run("!", quarantined)).yellow(),
        Span::from(run("-", cached)).dim(),
        Span::from(run(" ", free)),
        Span::from("]"),
    ])
}

fn table_of_rooms(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let rooms = state.rooms();
    let by = match state.order {
        Order::InPhase => "IN PHASE",
        Order::Age => "AGE",
        Order::Tokens => "TOKENS",
    };
    let title = match state.overview.rooms_open {
        0 => " no rooms are open ".to_owned(),
        open => format!(" {} of {open} rooms, by {} ", rooms.len(), by.to_lowercase()),
    };
    let rows = rooms.iter().map(|row| {
        Row::new([
            Cell::from(
                row.room
                    .rsplit('-')
                    .next()
                    .map(|seq| format!("#{seq}"))
                    .unwrap_or_default(),
            ),
            Cell::from(Span::from(row.phase.clone()).fg(colour(&row.phase))),
            Cell::from(lasting(row.in_phase_ms)),
            Cell::from(lasting(row.age_ms)),
            Cell::from(row.generation.to_string()),
            Cell::from(row.delivered_tokens.to_string()),
            Cell::from(row.waits_for.clone()),
        ])
    });
    let widths = [
        Constraint::Length(7),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(3),
        Constraint::Length(6),
        Constraint::Min(20),
    ];
    let head = Row::new(["ROOM", "PHASE", "IN PHASE", "AGE", "TRY", "TOKENS", "WAITS FOR"]).dim();
    let table = Table::new(rows, widths)
        .header(head)
        .column_spacing(1)
        .block(Block::new().borders(ratatui::widgets::Borders::TOP).title(title))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut chosen = TableState::default().with_selected((!rooms.is_empty()).then_some(state.cursor));
    frame.render_stateful_widget(table, area, &mut chosen);
}

fn foot(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let keys = match state.opened {
        Some(_) => "Up Down scroll  Esc back  q leave",
        None => "Up Down choose  Enter explain  s sort  p pause  ? keys  q leave",
    };
    frame.render_widget(Line::from(keys).dim(), area);
}

fn account(frame: &mut Frame<'_>, state: &State) {
    let text = match &state.account {
        None => "asking ...".to_owned(),
        Some(Err(why)) => why.clone(),
        Some(Ok(account)) => explain::text(account),
    };
    let area = frame.area();
    let area = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(2),
        ..area
    };
    let page = Paragraph::new(text)
        .wrap(Wrap { trim: false })
        .scroll((state.scrolled, 0))
        .block(Block::bordered());
    frame.render_widget(Clear, area);
    frame.render_widget(page, area);
}

fn help(frame: &mut Frame<'_>) {
    let lines: Vec<Line<'_>> = HELP
        .iter()
        .map(|(key, what)| Line::from(format!(" {key:<10}{what} ")))
        .collect();
    let (width, height) = (50, u16::try_from(lines.len()).unwrap_or(0) + 2);
    let whole = frame.area();
    let area = Rect {
        x: whole.x + whole.width.saturating_sub(width) / 2,
        y: whole.y + whole.height.saturating_sub(height) / 2,
        width: width.min(whole.width),
        height: height.min(whole.height),
    };
    frame.render_widget(Clear, area);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" keys ")),
        area,
    );
}

fn bad(is_bad: bool) -> Style {
    match is_bad {
        true => Style::new().red().bold(),
        false => Style::new(),
    }
}

fn colour(phase: &str) -> Color {
    match phase {
        "queued" => Color::Gray,
        "reserving" => Color::Magenta,
        "prefilling" => Color::Blue,
        "pulling" => Color::Cyan,
        "decoding" => Color::Green,
        _ => Color::Yellow,
    }
}

#[cfg(test)]
mod tests;
