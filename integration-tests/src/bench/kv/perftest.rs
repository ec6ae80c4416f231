//! `ucx_perftest`: a server, and a client that sends active messages out of one buffer into one other, again and again, as fast as it can. So what it
//! moves lies in the processor's caches unless a message is larger, and nothing is checked.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::World;
use super::peer::{Kind, Transport};
use crate::ports::free;

const PATIENCE: Duration = Duration::from_secs(120);
/// Until its server listens; and how often its client then tries again.
const SETTLE: Duration = Duration::from_millis(300);
const TRIES: usize = 10;
/// Most messages before those that count.
const WARM_UP: usize = 100;

/// GB/s of so many messages of `size` bytes.
pub(super) async fn rate(
    world: &World,
    transport: Transport,
    notice: bool,
    size: usize,
    messages: usize,
) -> Result<f64, String> {
    let [_, us] = run(world, transport, notice, "ucp_am_bw", size, messages).await?;
    Ok(size as f64 / us / 1e3)
}

/// Microseconds of a round trip, of the median; it tells a half.
pub(super) async fn trip_us(
    world: &World,
    transport: Transport,
    notice: bool,
    size: usize,
    trips: usize,
) -> Result<f64, String> {
    let [median, _] = run(world, transport, notice, "ucp_am_lat", size, trips).await?;
    Ok(2.0 * median)
}

/// Microseconds a message: of the median, and of all.
async fn run(
    world: &World,
    transport: Transport,
    notice: bool,
    test: &str,
    size: usize,
    messages: usize,
) -> Result<[f64; 2], String> {
    let port = free().port().to_string();
    let start = |arguments: &str| {
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        let command = Kind::Perftest { notice }.command(world, transport, &arguments)?;
        let command = [&world.inside[..], &command].concat();
        let mut process = Command::new(&command[0]);
        process.args(&command[1..]).kill_on_drop(true);
        process
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        process.spawn().map_err(|error| error.to_string())
    };
    let notice = if notice { " -e" } else { "" };
    let server = start(&format!("-p {port}"))?;
    let warm_up = messages.div_ceil(4).min(WARM_UP);
    let client = format!("127.0.0.1 -p {port} -t {test} -s {size} -n {messages} -w {warm_up} -f -I{notice}");
    let mut why = String::new();
    for _ in 0..TRIES {
        sleep(SETTLE).await;
        let output = timeout(PATIENCE, start(&client)?.wait_with_output()).await;
        let output = output.map_err(|_| format!("silent for {} s", PATIENCE.as_secs()))?;
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some(figures) = figures(&said) {
            drop(server);
            return Ok(figures);
        }
        why = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
    }
    let last = why.lines().rev().find(|line| !line.trim().is_empty());
    Err(last.unwrap_or("it said nothing").trim().to_owned())
}

/// Out of its last line: messages, the median, the average of late, the average of all, and so on.
fn figures(said: &str) -> Option<[f64; 2]> {
    let line = said.lines().rev().find(|line| !line.trim().is_empty())?;
    let numbers: Vec<f64> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    (numbers.len() == 8).then(|| [numbers[1], numbers[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_last_line_has_the_figures() {
        let said = "+------+\n|  Test | # iterations |\n+------+\n   500      0.110   982.396   983.5     1017.92    1017.92   1018   1018\n\n";
        assert_eq!(figures(said), Some([0.110, 983.5]));
        assert_eq!(figures("connect failed\n"), None);
        assert_eq!(figures("  1 2 3\n"), None);
    }
}
