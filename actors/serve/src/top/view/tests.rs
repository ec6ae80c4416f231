use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw;
use crate::admin::{LastMinute, Overview, PhaseRow, Quantiles, RoomRow, WorkerRow};
use crate::top::keys::pressed;
use crate::top::state::{Asked, State};

fn room(seq: u32, in_phase_ms: u64, tokens: u32) -> RoomRow {
    RoomRow {
        room: format!("00000000000000ab-{seq}"),
        request_id: format!("req_{seq}"),
        generation: 1,
        phase: "prefilling".to_owned(),
        age_ms: in_phase_ms + 10,
        in_phase_ms,
        waits_for: "prefill-0 to compute the prompt (4 of 10)".to_owned(),
        deadline_in_ms: Some(500),
        delivered_tokens: tokens,
        ..RoomRow::default()
    }
}

fn overview(rooms: &[RoomRow]) -> Overview {
    let phase = |phase: &str, rooms, oldest_ms| PhaseRow {
        phase: phase.to_owned(),
        rooms,
        oldest_ms,
        oldest: None,
    };
    let worker = |name: &str, leased, quarantined, heard| WorkerRow {
        name: name.to_owned(),
        role: "prefill".to_owned(),
        blocks_total: 100,
        blocks_leased: leased,
        blocks_quarantined: quarantined,
        slots_total: 8,
        heard_ms_ago: Some(heard),
        admin: Some("10.0.0.7:40123".to_owned()),
        ..WorkerRow::default()
    };
    Overview {
        gateway: "gateway-0".to_owned(),
        model: "m".to_owned(),
        uptime_s: 125,
        rooms_open: 12_345,
        phases: vec![
            phase("queued", 3, 1_500),
            phase("reserving", 0, 0),
            phase("prefilling", 9_999, 123_456),
            phase("pulling", 0, 0),
            phase("decoding", 2_343, 99),
            phase("draining", 0, 0),
        ],
        last_minute: LastMinute {
            failed: 2,
            completed: 40,
            tokens_per_s: 1_234.0,
            first_token: Quantiles {
                p50_ms: Some(250.0),
                p90_ms: None,
                p99_ms: Some(12_000.0),
            },
            ..LastMinute::default()
        },
        workers: vec![worker("prefill-0", 35, 1, 20), worker("prefill-1", 0, 0, 4_000)],
        oldest: rooms.to_vec(),
        ..Overview::default()
    }
}

fn screen(state: &State, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, state)).expect("drawn");
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(line).collect()
}

#[track_caller]
fn has(lines: &[String], part: &str) -> usize {
    let found = lines.iter().position(|line| line.contains(part));
    found.unwrap_or_else(|| panic!("no {part:?} in\n{}", lines.join("\n")))
}

fn press(state: &mut State, code: KeyCode) -> Asked {
    pressed(state, KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn eighty_by_twenty_four_has_everything() {
    let rooms: Vec<RoomRow> = (1..=20).map(|seq| room(seq, u64::from(seq) * 1_000, 0)).collect();
    let lines = screen(&State::new(overview(&rooms)), 80, 24);
    for part in [
        "gateway-0  serving",
        "up 2 min 5 s",
        "tokens 1234/s",
        "half 250 ms    99 % 12.0 s",
        "2 failed or expired",
        "9999",
        "2 min 3 s",
        "[####!",
        "silent",
        "20 of 12345 rooms, by in phase",
        "Enter explain",
    ] {
        has(&lines, part);
    }
    // The longest first.
    assert!(has(&lines, "#20 ") < has(&lines, "#19 "));
    assert!(
        lines
            .iter()
            .any(|line| line.contains("#20") && line.contains("prefill-0 to compute")),
        "{lines:#?}"
    );
}

#[test]
fn a_wide_screen_says_where_workers_are_asked() {
    let state = State::new(overview(&[]));
    let is_told = |width| screen(&state, width, 24).concat().contains("10.0.0.7:40123");
    assert!(is_told(104) && !is_told(80));
}

#[test]
fn what_is_wrong_is_said_in_the_first_line() {
    let mut state = State::new(Overview {
        not_ready: Some("no decode worker is connected".to_owned()),
        ..overview(&[])
    });
    assert_eq!(
        has(
            &screen(&state, 80, 24),
            "not serving: no decode worker is connected"
        ),
        0
    );
    state.lost("connection refused");
    assert_eq!(has(&screen(&state, 80, 24), "no answer: connection refused"), 0);
    state.heard(overview(&[]));
    assert_eq!(has(&screen(&state, 80, 24), " serving "), 0);
}

#[test]
fn keys_choose_sort_and_open() {
    let mut state = State::new(overview(&[
        room(1, 3_000, 7),
        room(2, 2_000, 9),
        room(3, 1_000, 8),
    ]));
    press(&mut state, KeyCode::Down);
    assert_eq!(press(&mut state, KeyCode::Enter), Asked::Account);
    assert_eq!(state.opened.as_deref(), Some("00000000000000ab-2"));
    has(&screen(&state, 80, 24), "asking ...");
    state.account = Some(Err("it is gone".to_owned()));
    has(&screen(&state, 80, 24), "it is gone");
    assert_eq!(press(&mut state, KeyCode::Esc), Asked::Nothing);
    assert_eq!(state.opened, None);
    // The cursor stays with its room.
    state.heard(overview(&[room(2, 9_000, 9), room(3, 1_000, 8)]));
    assert_eq!(state.cursor, 0);
    press(&mut state, KeyCode::Char('s'));
    press(&mut state, KeyCode::Char('s'));
    has(&screen(&state, 80, 24), "by tokens");
    press(&mut state, KeyCode::Char('?'));
    has(&screen(&state, 80, 24), "all of that room");
    press(&mut state, KeyCode::Esc);
    assert_eq!(press(&mut state, KeyCode::Esc), Asked::Leave);
    assert_eq!(press(&mut state, KeyCode::Char('q')), Asked::Leave);
    state.heard(overview(&[]));
    assert_eq!(press(&mut state, KeyCode::Down), Asked::Nothing);
    assert_eq!(state.cursor, 0);
}

#[test]
fn any_size_can_be_drawn() {
    let rooms: Vec<RoomRow> = (1..=70).map(|seq| room(seq, 5, 0)).collect();
    let mut state = State::new(overview(&rooms));
    for (width, height) in [(1, 1), (20, 5), (80, 10), (300, 100)] {
        screen(&state, width, height);
    }
    state.help = true;
    state.opened = Some("x".to_owned());
    screen(&state, 10, 3);
    let empty = State::new(Overview::default());
    has(&screen(&empty, 80, 24), "no worker is linked");
}
