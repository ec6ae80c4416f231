use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::*;

const CONTENT: &[u8] = b"GGUF weights";

/// A hub on the loopback with two repositories, `o/n` and `o/deep`. Serves until the test process ends.
fn hub() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(&stream));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: &TcpStream) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    let range = lines.take_while(|l| !l.is_empty()).find_map(|l| {
        let (name, value) = l.split_once(": ")?;
        (name.eq_ignore_ascii_case("range")).then(|| value.to_owned())
    });
    let path = request.split(' ').nth(1).unwrap_or_default();
    let files = r#"{"sha":"c0","siblings":[{"rfilename":"README.md"},{"rfilename":"m.f16.gguf"},{"rfilename":"m.Q4_1.gguf"}]}"#;
    let body = if range.as_deref() == Some("bytes=0-0") {
        &CONTENT[..1]
    } else {
        CONTENT
    };
    let common = "connection: close\r\netag: \"e0\"\r\nx-repo-commit: c0";
    let head =
        |status, len, more| format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\n{common}{more}\r\n\r\n");
    let reply = match path {
        "/api/models/o/n/revision/main" => {
            [head("200 OK", files.len(), "").as_bytes(), files.as_bytes()].concat()
        }
        "/api/models/o/deep/revision/main" => {
            let files = r#"{"sha":"c0","siblings":[{"rfilename":"q/m.gguf"}]}"#;
            [head("200 OK", files.len(), "").as_bytes(), files.as_bytes()].concat()
        }
        "/o/n/resolve/main/m.Q4_1.gguf" | "/o/deep/resolve/main/q/m.gguf" => {
            let more = format!("\r\ncontent-range: bytes 0-{}/{}", body.len() - 1, CONTENT.len());
            [head("206 Partial Content", body.len(), &more).as_bytes(), body].concat()
        }
        "/api/models/o/silent/revision/main" => return thread::sleep(Duration::from_secs(5)),
        _ => head("404 Not Found", 0, "").into_bytes(),
    };
    // A client that left does not matter to a server.
    let _ = stream.write_all(&reply);
}

fn options(dir: &tempfile::TempDir) -> FetchOptions {
    let mut options = FetchOptions::new(dir.path());
    options.hub_endpoint = Some(hub());
    options
}

#[test]
fn the_preferred_file_is_fetched_with_progress() {
    let dir = tempfile::tempdir().unwrap();
    let mut last = None;
    let path = fetch("o/n", None, &options(&dir), &mut |p| last = Some(p)).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), CONTENT);
    let bytes = CONTENT.len() as u64;
    assert_eq!(
        last,
        Some(Progress {
            done_bytes: bytes,
            total_bytes: bytes
        })
    );
}

#[test]
fn while_another_fetches_one_waits() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&dir);
    fetch("o/deep", None, &options, &mut |_| ()).unwrap();
    options.busy = Duration::ZERO;
    let hub = dir.path().join("hub");
    let _other = Lock::acquire(&hub.join(lock_name("o/n")), Duration::ZERO, &mut || 0).unwrap();
    let busy = fetch("o/n", None, &options, &mut |_| ());
    assert!(matches!(busy, Err(FetchError::Busy(_))), "{busy:?}");
    fetch("o/deep", Some("q/m.gguf"), &options, &mut |_| ()).unwrap();
}

#[test]
fn what_is_in_the_cache_is_not_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&dir);
    let again = |repo, file, options: &FetchOptions| {
        fetch(repo, file, options, &mut |_| panic!("nothing has to be fetched")).unwrap()
    };
    let deep = fetch("o/deep", None, &options, &mut |_| ()).unwrap();
    assert_eq!(again("o/deep", None, &options), deep);
    let path = fetch("o/n", None, &options, &mut |_| ()).unwrap();
    // Nor is the hub asked, where the file is at the top of the repository or was named.
    options.hub_endpoint = Some("http://127.0.0.1:1".to_owned());
    assert_eq!(again("o/n", None, &options), path);
    assert_eq!(again("o/n", Some("m.Q4_1.gguf"), &options), path);
    assert_eq!(again("o/deep", Some("q/m.gguf"), &options), deep);
}

#[test]
fn errors_name_the_repository() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&dir);
    options.stall = Duration::from_millis(300);
    for (repo, file) in [
        ("o/missing", None),
        ("o/n", Some("missing.gguf")),
        ("o/silent", None),
    ] {
        let error = fetch(repo, file, &options, &mut |_| ()).unwrap_err();
        assert!(
            matches!(&error, FetchError::Hub { repo: r, .. } if r == repo),
            "{error}"
        );
    }
    options.hub_endpoint = Some("http://127.0.0.1:1".to_owned());
    assert!(fetch("o/n", None, &options, &mut |_| ()).is_err());
}

#[test]
fn small_formats_are_preferred_and_pieces_are_not_taken() {
    let check = |files: &[&str], expected: Option<&str>| {
        let files: Vec<_> = files.iter().map(|&f| f.to_owned()).collect();
        assert_eq!(choose(&files).ok().as_deref(), expected);
    };
    check(
        &["a.F16.gguf", "a.Q8_0.gguf", "a.Q4_K_M.gguf"],
        Some("a.Q4_K_M.gguf"),
    );
    check(&["b.gguf", "a.gguf"], Some("a.gguf"));
    check(&["a-00001-of-00002.gguf", "a.safetensors"], None);
    check(&[], None);
}
