//! The runbook has a page for each alert and for each outcome, and none for what is not there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use integration_tests::innkeeper;
use observe::labels;

/// What every page says of its alert or its reason.
const PARTS: [&str; 3] = ["What it means", "What to look at", "What to do"];

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of the pages in a folder.
fn pages(folder: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(root(folder))
        .unwrap()
        .map(|file| file.unwrap().path());
    let pages = files.filter(|path| path.extension().is_some_and(|end| end == "md"));
    pages
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// That each part is there, in order, with something in it.
fn check_parts(page: &str, text: &str) {
    let mut rest = text;
    for part in PARTS {
        let (_, behind) = rest
            .split_once(&format!("**{part}.**"))
            .unwrap_or_else(|| panic!("{page}: no \"{part}\""));
        let said = behind.split("**").next().unwrap().trim();
        assert!(said.len() > 20, "{page}: \"{part}\" says nothing: {said}");
        rest = behind;
    }
}

fn alerts() -> BTreeSet<String> {
    let rules = read(&root("deploy/prometheus/rules.yml"));
    let names = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    names.map(str::to_owned).collect()
}

#[test]
fn each_alert_has_a_page_and_names_it() {
    let alerts = alerts();
    assert!(alerts.len() >= 15, "{alerts:?}");
    assert_eq!(pages("docs/runbook/alerts"), alerts);
    let rules = read(&root("deploy/prometheus/rules.yml"));
    let index = read(&root("docs/runbook/README.md"));
    for alert in &alerts {
        let page = format!("docs/runbook/alerts/{alert}.md");
        assert!(
            rules.contains(&format!("runbook: {page}")),
            "{alert} does not name {page}"
        );
        assert!(
            index.contains(&format!("(alerts/{alert}.md)")),
            "{alert} is not in the index"
        );
        check_parts(&page, &read(&root(&page)));
    }
}

/// Each alert is tried where it must come and where it must not.
#[test]
fn each_alert_has_tests() {
    let tests = read(&root("deploy/prometheus/rules_test.yml"));
    for alert in alerts() {
        let cases: Vec<&str> = tests.split(&format!("alertname: {alert}\n")).skip(1).collect();
        let comes = |case: &&&str| case.trim_start().starts_with("exp_alerts:\n");
        let (come, stay) = (
            cases.iter().filter(comes).count(),
            cases.iter().filter(|case| !comes(case)).count(),
        );
        assert!(
            come > 0 && stay > 0,
            "{alert}: {come} tests where it comes, {stay} where it does not"
        );
    }
}

/// What stands for something else in a command, and something that it can stand for. Nobody answers there.
const PLACES: [(&str, &str); 9] = [
    ("GATEWAY", "127.0.0.1:1"),
    ("W", "decode-0"),
    ("ROOM", "7"),
    ("TRACE", "00000000000000000000000000000abc"),
    ("PHASE", "pulling"),
    ("P", "pulling"),
    ("O", "failed"),
    ("REASON", "no_worker"),
    ("R", "no_worker"),
];

/// The commands that a page names: between backquotes, or lines of a block.
fn commands(page: &str) -> Vec<String> {
    let parts: Vec<&str> = page.split("```").collect();
    let texts = parts.iter().step_by(2);
    let inline = texts.flat_map(|text| text.split('`').skip(1).step_by(2).map(str::to_owned));
    let blocks = parts.iter().skip(1).step_by(2);
    let lines = blocks.flat_map(|block| {
        block
            .lines()
            .map(|line| line.split('#').next().unwrap().to_owned())
    });
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_command = |text: &String| {
        let asks = ["innkeeper rooms", "innkeeper explain", "innkeeper top"];
        asks.iter().any(|ask| text.starts_with(ask))
    };
    inline.chain(lines).map(words).filter(is_command).collect()
}

/// A command is right if all that is wrong with it is that nobody answers.
fn check_command(place: &str, command: &str) {
    let word = |word: &str| {
        let known = PLACES.iter().find(|(stands, _)| *stands == word);
        known.map_or(word, |&(_, for_it)| for_it).to_owned()
    };
    let mut words: Vec<String> = command.split(' ').skip(1).map(word).collect();
    if words[0] == "explain" && words.len() == 1 {
        words.push("7".to_owned());
    }
    if !command.contains("--admin") {
        words.extend(["--admin", "127.0.0.1:1"].map(str::to_owned));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (succeeds, said) = innkeeper(&words);
    assert!(
        !succeeds && said.contains("no gateway's admin listener answers on 127.0.0.1:1"),
        "{place}: {command}: {said}"
    );
}

/// What pages and alerts tell people to type can be typed.
#[test]
fn each_command_can_be_given() {
    let mut count = 0;
    for folder in ["docs/runbook", "docs/runbook/alerts", "docs/runbook/outcomes"] {
        for page in pages(folder) {
            let path = format!("{folder}/{page}.md");
            for command in commands(&read(&root(&path))) {
                check_command(&path, &command);
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count} commands");
    let rules = read(&root("deploy/prometheus/rules.yml"));
    let rules = rules
        .replace("{{ $labels.instance }}", "GATEWAY")
        .replace("{{ $labels.worker }}", "W")
        .replace("{{ $labels.phase }}", "PHASE");
    // What follows a command in a sentence is no part of it.
    let ends = [";", ":", " (", " says", " against", " of the", "\n"];
    let starts: Vec<&str> = rules.split("innkeeper ").skip(1).collect();
    for start in starts {
        let end = ends.iter().filter_map(|end| start.find(end)).min().unwrap();
        let command = format!("innkeeper {}", start[..end].trim_end_matches('"'));
        check_command("rules.yml", &command);
        count += 1;
    }
    assert!(count > 45, "{count} commands");
}

#[test]
fn each_outcome_has_a_page_and_each_reason_a_section() {
    let words: BTreeSet<_> = observe::outcomes().into_iter().map(labels::outcome).collect();
    let outcomes: BTreeSet<String> = words.iter().map(|(outcome, _)| (*outcome).to_owned()).collect();
    let refused = ["refused".to_owned()].into();
    assert_eq!(pages("docs/runbook/outcomes"), &outcomes | &refused);
    for outcome in &outcomes {
        let of = words
            .iter()
            .filter(|(name, _)| name == outcome)
            .map(|(_, reason)| *reason);
        check_page(outcome, &of.collect());
    }
    let reasons = [
        observe::RefusedBecause::TooManyRequests,
        observe::RefusedBecause::ShuttingDown,
        observe::RefusedBecause::NotStarted,
        observe::RefusedBecause::Unavailable,
    ];
    check_page("refused", &reasons.map(labels::refused_because).into());
}

fn check_page(outcome: &str, reasons: &BTreeSet<&str>) {
    let page = format!("docs/runbook/outcomes/{outcome}.md");
    let text = read(&root(&page));
    let sections: Vec<&str> = text.split("\n## ").skip(1).collect();
    let heads: BTreeSet<&str> = sections
        .iter()
        .map(|section| section.lines().next().unwrap())
        .collect();
    assert_eq!(&heads, reasons, "{page}");
    for section in sections {
        check_parts(&page, section);
    }
}
