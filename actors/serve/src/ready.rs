//! Waiting until the cluster can serve, and saying so.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

use crate::config::Config;

/// Loading a large model from a slow disk takes this long at most.
const PATIENCE: Duration = Duration::from_secs(600);

/// Asks the gateway until it is ready, then prints how to reach it.
pub(crate) async fn announce(config: &Config, model: &str) -> Result<()> {
    let give_up_at = Instant::now() + PATIENCE;
    while !is_ready(config.api.http).await {
        if Instant::now() >= give_up_at {
            bail!(
                "the cluster is not ready after {} s: see the log above",
                PATIENCE.as_secs()
            );
        }
        sleep(Duration::from_millis(100)).await;
    }
    match crate::output::print(&greeting(config, model)) {
        // Nobody reads it: it serves all the same.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

/// The ready line, and what to do next.
fn greeting(config: &Config, model: &str) -> String {
    let (http, https, admin) = (config.api.http, config.api.https, config.admin.listen);
    let usual = Config::default();
    // What the commands find by themselves need not be said.
    let server = match https == usual.api.https {
        true => String::new(),
        false => format!(" --server {https}"),
    };
    let from = match admin == usual.admin.listen {
        true => String::new(),
        false => format!(" --admin {admin}"),
    };
    format!(
        "\ninnkeeper is ready on http://{http} (HTTP/1.1, HTTP/2) and https://{https} (HTTP/3, HTTP/2, HTTP/1.1)\n\n  \
         curl -N http://{http}/v1/chat/completions -H 'content-type: application/json' \\\n    \
         -d '{{\"model\":\"{model}\",\"temperature\":0.2,\"stream\":true,\n         \
         \"messages\":[{{\"role\":\"user\",\"content\":\"What is the capital of France?\"}}]}}'\n\n  \
         innkeeper chat{server}     talk to it over HTTP/3\n  \
         innkeeper rooms{from}    see where every request is (http://{admin}/rooms)\n\n",
    )
}

/// Whether `GET /health/ready` says 200.
async fn is_ready(http: SocketAddr) -> bool {
    matches!(crate::http::get(http, "/health/ready").await, Ok((200, _)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_where_commands_look_is_named() {
        let mut config = Config::default();
        let usual = greeting(&config, "m");
        assert!(
            !usual.contains("--server") && !usual.contains("--admin"),
            "{usual}"
        );
        config.api.https.set_port(41_443);
        config.admin.listen.set_port(41_090);
        let other = greeting(&config, "m");
        assert!(
            other.contains("innkeeper chat --server 127.0.0.1:41443 "),
            "{other}"
        );
        assert!(
            other.contains("innkeeper rooms --admin 127.0.0.1:41090 "),
            "{other}"
        );
    }
}
