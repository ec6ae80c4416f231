//! What values may be, where the type does not say it.

use std::ops::RangeInclusive;

use super::Config;

/// A value that cannot be.
pub(super) struct Broken {
    pub(super) key: &'static str,
    pub(super) value: String,
    /// What it must be.
    pub(super) rule: String,
}

/// Longest time that anything here may be set to.
const DAY_MS: u64 = 86_400_000;
/// Longest time that one thing in a mock's step may take.
const MINUTE_US: u64 = 60_000_000;
/// Longest time that a process may take to stop.
const HOUR_MS: u64 = 3_600_000;

impl Config {
    pub(super) fn check(&self) -> Result<(), Broken> {
        for (key, value, range) in self.ranges() {
            if !range.contains(&value) {
                let rule = format!("from {} to {}", range.start(), range.end());
                return Err(broken(key, &value, rule));
            }
        }
        let worker = &self.worker;
        if !worker.block_tokens.is_power_of_two() {
            return Err(broken(
                "worker.block_tokens",
                &worker.block_tokens,
                "a power of two".to_owned(),
            ));
        }
        let mesh = &self.mesh;
        if mesh.lease_ms < 4 * mesh.heartbeat_ms {
            let rule = format!(
                "at least four heartbeats, which are {} ms (mesh.heartbeat_ms)",
                4 * mesh.heartbeat_ms
            );
            return Err(broken("mesh.lease_ms", &mesh.lease_ms, rule));
        }
        let name = &self.node.name;
        if !name.is_empty() && wire::check_node_name(name).is_err() {
            let rule = "at most 63 ASCII letters, digits, `-`, `_` and `.`".to_owned();
            return Err(broken("node.name", name, rule));
        }
        let listening = [
            ("api.http", self.api.http),
            ("api.https", self.api.https),
            ("admin.listen", self.admin.listen),
            ("mesh.listen", mesh.listen),
        ];
        for (key, address) in listening {
            if address.port() == 0 {
                return Err(broken(
                    key,
                    &address,
                    "an address with a port, which others can know".to_owned(),
                ));
            }
        }
        self.check_cors()?;
        self.check_tracing()
    }

    fn check_cors(&self) -> Result<(), Broken> {
        let is_right =
            |origin: &&String| *origin == "*" || (is_origin(origin, true) && !origin.ends_with('/'));
        match self.api.cors.iter().find(|origin| !is_right(origin)) {
            None => Ok(()),
            Some(origin) => {
                let rule = "origins as browsers send them, https://HOST or http://HOST:PORT, or *".to_owned();
                Err(broken("api.cors", origin, rule))
            }
        }
    }

    fn check_tracing(&self) -> Result<(), Broken> {
        let tracing = &self.tracing;
        for (key, url) in [
            ("tracing.endpoint", &tracing.endpoint),
            ("tracing.ui", &tracing.ui),
        ] {
            if !url.is_empty() && !is_origin(url, key == "tracing.ui") {
                let rule = match key {
                    "tracing.ui" => "http://HOST:PORT or https://HOST, or empty",
                    _ => "http://HOST:PORT, or empty; TLS is a matter of a collector beside the node",
                };
                return Err(broken(key, url, rule.to_owned()));
            }
        }
        if !(0.0..=1.0).contains(&tracing.sample) {
            return Err(broken(
                "tracing.sample",
                &tracing.sample,
                "from 0 to 1".to_owned(),
            ));
        }
        Ok(())
    }

    fn ranges(&self) -> [(&'static str, u64, RangeInclusive<u64>); 26] {
        let (api, limits, mesh, worker, mock) =
            (&self.api, &self.limits, &self.mesh, &self.worker, &self.mock);
        [
            ("api.max_body_bytes", api.max_body_bytes as u64, 1..=1 << 30),
            ("api.max_requests", api.max_requests as u64, 1..=1 << 20),
            ("api.max_n", api.max_n.into(), 1..=1_024),
            ("limits.queue_rooms", limits.queue_rooms as u64, 1..=1 << 20),
            ("limits.queue_ms", limits.queue_ms, 1..=DAY_MS),
            ("limits.request_ms", limits.request_ms, 1..=DAY_MS),
            ("limits.reserve_ms", limits.reserve_ms, 1..=DAY_MS),
            ("limits.prefill_stall_ms", limits.prefill_stall_ms, 1..=DAY_MS),
            ("limits.pull_ms", limits.pull_ms, 1..=DAY_MS),
            ("limits.decode_stall_ms", limits.decode_stall_ms, 1..=DAY_MS),
            ("limits.unread_tokens", limits.unread_tokens.into(), 1..=1 << 20),
            ("limits.attempts", limits.attempts.into(), 1..=1_000),
            ("limits.shutdown_ms", limits.shutdown_ms, 0..=HOUR_MS),
            ("mesh.heartbeat_ms", mesh.heartbeat_ms, 10..=HOUR_MS),
            (
                "mesh.lease_ms",
                mesh.lease_ms,
                40..=u64::from(wire::limits::MAX_LEASE_MS),
            ),
            ("worker.slots", worker.slots.into(), 1..=1 << 16),
            // What the machine has is looked at when there is a model.
            ("worker.pool_mib", worker.pool_mib, 1..=1 << 30),
            ("worker.step_tokens", worker.step_tokens as u64, 1..=1 << 20),
            ("worker.chunk_tokens", worker.chunk_tokens as u64, 1..=1 << 20),
            ("worker.threads", worker.threads as u64, 0..=1_024),
            ("mock.step_us", mock.step_us, 0..=MINUTE_US),
            ("mock.prompt_token_us", mock.prompt_token_us, 0..=MINUTE_US),
            ("mock.answer_token_us", mock.answer_token_us, 0..=MINUTE_US),
            ("ucx.no_progress_ms", self.ucx.no_progress_ms, 10..=DAY_MS),
            (
                "tracing.slow_first_token_ms",
                self.tracing.slow_first_token_ms,
                0..=DAY_MS,
            ),
            ("tracing.slow_total_ms", self.tracing.slow_total_ms, 0..=DAY_MS),
        ]
    }
}

/// Whether it is an address without a path: `http://HOST:PORT`, or where that may be one of TLS `https://HOST`.
fn is_origin(url: &str, with_tls: bool) -> bool {
    let Ok(uri) = url.parse::<hyper::Uri>() else {
        return false;
    };
    let scheme = uri.scheme_str();
    (scheme == Some("http") || (with_tls && scheme == Some("https")))
        && uri.host().is_some_and(|host| !host.is_empty())
        && matches!(uri.path(), "" | "/")
        && uri.query().is_none()
}

fn broken(key: &'static str, value: &impl ToString, rule: String) -> Broken {
    Broken {
        key,
        value: value.to_string(),
        rule,
    }
}
