# Every recipe is one word. None is needed for set-up: `cargo run --release -- up` and `cargo test --workspace` do all of it.

# Where cargo builds, and what is recorded is written.
target := absolute_path(env_var_or_default("CARGO_TARGET_DIR", "target"))

# A whole cluster in one process, with the default model.
up *ARGS:
    cargo run --release -- up {{ARGS}}

# Every test.
test:
    cargo test --workspace

# What continuous integration runs. Never writes to the tree.
verify:
    bash .ci/run

# Formats, and applies what clippy can mend by itself.
fix:
    cargo fmt --all
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged

# The protocol under random schedules: property tests of rooms and hosts with many more cases than the test command runs.
properties CASES="20000":
    PROPTEST_CASES={{CASES}} cargo test --release -p innkeeper-room

# A whole cluster on one thread, under virtual time, with the faults of this seed. `--trace` tells all of it, `--minutes M` how long.
sim SEED *ARGS:
    cargo run --release -p innkeeper-sim -- one {{SEED}} {{ARGS}}

# Known bugs of the field, planted in our own code one at a time: how many seeds it takes to find each. Writes target/planted.json.
planted *ARGS:
    cargo run --release -p innkeeper-sim -- planted --json {{target}}/planted.json {{ARGS}}

# So many seeds, and then some twice in fresh processes. Writes target/sim.json and target/sim-same.json.
sim-many COUNT *ARGS:
    cargo run --release -p innkeeper-sim -- many {{COUNT}} --json {{target}}/sim.json {{ARGS}}
    cargo run --release -p innkeeper-sim -- same 20 --json {{target}}/sim-same.json

# Goes on with the seeds after those of `sim-many`, from this one. Writes target/sim-more.json, which `just evidence` adds to the others.
sim-more COUNT FROM *ARGS:
    cargo run --release -p innkeeper-sim -- many {{COUNT}} --from {{FROM}} --json {{target}}/sim-more.json {{ARGS}}

# The protocol under every schedule: models of rooms, hosts and ledgers that are larger than those of the test command. Writes target/model.jsonl.
model STATES="10000000":
    mkdir -p {{target}}
    cargo run --release -p innkeeper-evidence -- stamp > {{target}}/model.jsonl
    MODEL_JSON={{target}}/model.jsonl MODEL_STATES={{STATES}} cargo test --release -p innkeeper-room --test it model:: -- --nocapture --test-threads=1

# The fault matrix on real processes over real UCX, each cell three times; or the rows and cells that are named, such as F13 F12.ends. Writes faults.md and faults.json into the target folder.
faults *ROWS:
    cargo build --release -p innkeeper -p innkeeper-integration-tests --features faults --bins
    "${CARGO_TARGET_DIR:-target}/release/faults" {{ROWS}}

# Fuzzes one target, or `all`, for so many seconds each, so many at once. Needs `rustup toolchain install nightly` and
# `cargo install cargo-fuzz --locked`. Writes target/fuzz.json. (The tests replay the corpus with neither.)
fuzz TARGET="all" SECONDS="600" AT_ONCE="1":
    bash integration-tests/fuzz/run {{TARGET}} {{SECONDS}} {{AT_ONCE}}

# Mutation testing of `room`, `wire` and `kv`, or of those that are named: the code is changed in one place, and a test has to notice.
# Needs `cargo install cargo-mutants --locked`. Takes hours; writes target/mutants.
mutants *CRATES:
    bash integration-tests/evidence/mutants {{CRATES}}

# Keeps what the recipes above have recorded in docs/evidence, and makes docs/evidence.md of it.
evidence:
    cargo run --release -p innkeeper-evidence -- make {{target}}

# Measures one thing, side by side in one run: `engine` (the CPU engine and llama.cpp), `control` (the control path and NVIDIA Dynamo's), `streams`
# (many of them), `queue` (a long one), `growth` (what it costs to grow), `tracing` (what traces cost a cluster), `cpu` (the CPU device), `kv` (KV
# moves, beside UCX's own benchmark, NIXL and Mooncake); `load` (a load on any server). First `peers`, which fetches and builds the others. See docs/benchmarks.md.
bench NAME *ARGS:
    bash integration-tests/bench/run {{NAME}} {{ARGS}}

# A trace of requests in virtual time through the real scheduler, cache, placement and admission: `--prefill N --decode M --policy P --speed S`,
# several with commas. The trace is a file of yours (`--help` says where to get one). `--publish FOLDER` writes tables and curves.
replay TRACE *ARGS:
    cargo run --release -p innkeeper-replay -- {{TRACE}} {{ARGS}}

# The live page in a real browser, with ten thousand rooms that are made up and with a real cluster. Needs node and npm; pictures go to PICTURES.
page PICTURES="":
    cargo build --release
    bash integration-tests/browser/run "${CARGO_TARGET_DIR:-target}/release/innkeeper" {{PICTURES}}

# The image without docker: ARCHIVE for `docker load`, `podman load`, `ctr images import`. `just image innkeeper.tar innkeeper:0.1.0-smollm2 smollm2`.
image ARCHIVE NAME="localhost/innkeeper:dev" MODEL="":
    deploy/image/build {{ARCHIVE}} {{NAME}} {{MODEL}}

# The manifests: built, validated, and held against each other.
manifests:
    bash .ci/manifests
