//! `innkeeper chat`: a conversation over HTTP/3, streamed to the terminal. Ctrl-C ends the answer, not the conversation.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use api::client::{Client, ClientConfig, ClientError, Reply};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::time::sleep;

use crate::cli::ChatArgs;
use crate::config::Config;
use crate::{output, paths};

/// After this time it is said what is awaited.
const QUIET: Duration = Duration::from_millis(500);

/// How one answer ended.
enum Ended {
    /// As the model wanted, or at the limit.
    Whole,
    /// Ctrl-C: the stream was reset, and the server stops computing.
    Interrupted,
    /// The server did not answer, and says why.
    Refused(String),
}

/// Runs the conversation until end of input.
pub(crate) async fn run(config: &Config, args: &ChatArgs) -> Result<()> {
    let client = connect(config, args).await?;
    let model = match &args.model {
        Some(model) => model.clone(),
        None => first_model(&client).await?,
    };
    let mut messages = Vec::new();
    if !args.message.is_empty() {
        messages.push(json!({"role": "user", "content": args.message.join(" ")}));
        if let Err(why) = answer(&client, &model, args, &messages).await? {
            bail!(why);
        }
    } else {
        eprintln!("talking to {model}; Ctrl-C ends an answer, Ctrl-D the conversation");
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Some(line) = prompt(&mut lines).await? {
            messages.push(json!({"role": "user", "content": line}));
            match answer(&client, &model, args, &messages).await? {
                Ok(said) => messages.push(json!({"role": "assistant", "content": said})),
                // The conversation goes on, as if that had not been said.
                Err(why) => {
                    eprintln!("{why}");
                    messages.pop();
                }
            }
        }
    }
    client.close().await;
    Ok(())
}

async fn connect(config: &Config, args: &ChatArgs) -> Result<Client> {
    let ca = match &args.ca {
        Some(file) => file.clone(),
        None => paths::web_ca(config)?.join("ca.crt"),
    };
    let roots = std::fs::read(&ca).with_context(|| {
        format!(
            "cannot read the certificate to trust, {}, which the first `innkeeper up` makes: give another with --ca FILE",
            ca.display()
        )
    })?;
    let server = config.api.https;
    let connecting = Client::connect(ClientConfig::new(server, "localhost", roots));
    tokio::pin!(connecting);
    let connected = tokio::select! {
        biased;
        connected = &mut connecting => connected,
        () = sleep(QUIET) => {
            eprintln!("trying {server} over HTTP/3 ...");
            connecting.await
        }
    };
    connected.map_err(|error| explained(error, &ca))
}

/// What to do about it.
fn explained(error: ClientError, ca: &Path) -> anyhow::Error {
    let is_there = "is `innkeeper up` running? Another address can be given with --server ADDR";
    match error {
        ClientError::Untrusted { addr, message } => anyhow!(
            "the certificate of {addr} is not vouched for by {}: {message}; give the authority that is with --ca FILE",
            ca.display()
        ),
        ClientError::Roots(why) => anyhow!("{} holds no certificate to trust: {why}", ca.display()),
        ClientError::Refused { addr, .. } => anyhow!("nothing listens on {addr} (UDP): {is_there}"),
        ClientError::Timeout { after, .. } => anyhow!(
            "no answer over HTTP/3 within {} s (a firewall may drop UDP): {is_there}",
            after.as_secs()
        ),
        other => anyhow!("{other}: {is_there}"),
    }
}

async fn first_model(client: &Client) -> Result<String> {
    let mut reply = client.get("/v1/models").await?;
    ensure!(
        reply.status.is_success(),
        "/v1/models answered {}: is that an Innkeeper?",
        reply.status
    );
    let models: Value = serde_json::from_str(&reply.text().await?).context("/v1/models")?;
    models["data"][0]["id"]
        .as_str()
        .map(str::to_owned)
        .context("the server lists no model")
}

/// The next thing the user says; none at the end of input. Empty lines say nothing.
async fn prompt(lines: &mut Lines<BufReader<Stdin>>) -> Result<Option<String>> {
    loop {
        eprint!("\n> ");
        let line = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => return Ok(None),
            // Waits for a person, who may take any time.
            line = lines.next_line() => line?,
        };
        match line {
            Some(line) if line.trim().is_empty() => {}
            line => return Ok(line),
        }
    }
}

/// Asks, streams the answer to standard output, and returns it; or why the server refuses.
async fn answer(
    client: &Client,
    model: &str,
    args: &ChatArgs,
    messages: &[Value],
) -> Result<Result<String, String>> {
    let body = json!({"model": model, "messages": messages, "stream": true, "max_tokens": args.max_tokens,
        "temperature": args.temperature, "top_p": 0.9});
    let mut said = String::new();
    let ended = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Ended::Interrupted,
        // Bounded by the client's own deadlines for the head and for silence.
        ended = stream(client, body, &mut said) => ended?,
    };
    match ended {
        Ended::Whole => output::print("\n")?,
        Ended::Interrupted => output::print("\n[interrupted: the request is aborted]\n")?,
        Ended::Refused(why) => return Ok(Err(why)),
    }
    Ok(Ok(said))
}

async fn stream(client: &Client, body: Value, said: &mut String) -> Result<Ended> {
    let mut reply = client
        .post_json("/v1/chat/completions", body.to_string(), &[])
        .await?;
    if !reply.status.is_success() {
        return refused(&mut reply).await;
    }
    while let Some(event) = reply.event().await? {
        if event == "[DONE]" {
            return Ok(Ended::Whole);
        }
        let chunk: Value = serde_json::from_str(&event).context("the answer is not JSON")?;
        if let Some(message) = chunk["error"]["message"].as_str() {
            bail!("the answer was cut off: {message}");
        }
        if let Some(text) = chunk["choices"][0]["delta"]["content"].as_str() {
            output::print(text)?;
            said.push_str(text);
        }
    }
    bail!("the answer was cut off without a reason")
}

async fn refused(reply: &mut Reply) -> Result<Ended> {
    let status = reply.status;
    let text = reply.text().await?;
    let error: Value = serde_json::from_str(&text).unwrap_or_default();
    let message = error["error"]["message"].as_str().unwrap_or(&text);
    Ok(Ended::Refused(format!("{status}: {message}")))
}
