//! `innkeeper chat`: a conversation over HTTP/3, streamed to the terminal. Ctrl-C ends the answer, not the conversation.

use std::io::Write;

use anyhow::{Context, Result, bail};
use api::client::{Client, ClientConfig, Reply};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use crate::cli::ChatArgs;
use crate::config::Config;
use crate::paths;

/// How one answer ended.
enum Ended {
    /// As the model wanted, or at the limit.
    Whole,
    /// Ctrl-C: the stream was reset, and the server stops computing.
    Interrupted,
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
        answer(&client, &model, args, &messages).await?;
    } else {
        eprintln!("talking to {model}; Ctrl-C ends an answer, Ctrl-D the conversation");
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Some(line) = prompt(&mut lines).await? {
            messages.push(json!({"role": "user", "content": line}));
            let said = answer(&client, &model, args, &messages).await?;
            messages.push(json!({"role": "assistant", "content": said}));
        }
    }
    client.close().await;
    Ok(())
}

async fn connect(config: &Config, args: &ChatArgs) -> Result<Client> {
    let ca = match &args.ca {
        Some(file) => file.clone(),
        None => paths::certs(config)?.join("web").join("ca.crt"),
    };
    let roots = std::fs::read(&ca).with_context(|| {
        format!(
            "cannot read the certificate to trust, {}: give one with --ca",
            ca.display()
        )
    })?;
    let server = config.api.https;
    let connected = Client::connect(ClientConfig::new(server, "localhost", roots)).await;
    connected
        .with_context(|| format!("no server answers over HTTP/3 on {server}: is `innkeeper up` running?"))
}

async fn first_model(client: &Client) -> Result<String> {
    let text = client.get("/v1/models").await?.text().await?;
    let models: Value = serde_json::from_str(&text).context("/v1/models")?;
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

/// Asks, streams the answer to standard output, and returns it.
async fn answer(client: &Client, model: &str, args: &ChatArgs, messages: &[Value]) -> Result<String> {
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
        Ended::Whole => println!(),
        Ended::Interrupted => println!("\n[interrupted: the request is aborted]"),
    }
    Ok(said)
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
            print!("{text}");
            std::io::stdout().flush()?;
            said.push_str(text);
        }
    }
    bail!("the answer was cut off without a reason")
}

async fn refused(reply: &mut Reply) -> Result<Ended> {
    let status = reply.status;
    let text = reply.text().await?;
    let error: Value = serde_json::from_str(&text).unwrap_or_default();
    bail!(
        "{status}: {}",
        error["error"]["message"].as_str().unwrap_or(&text)
    )
}
