//! What load there is to be.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::prompt;

/// A load, as `bench load` takes it.
#[derive(Clone, PartialEq, Debug, Args)]
pub struct Load {
    /// The server.
    #[arg(long)]
    pub to: SocketAddr,
    /// What it calls the model.
    #[arg(long)]
    pub model: String,
    /// What is asked for.
    #[arg(long, value_enum, default_value_t = Endpoint::Completions)]
    pub endpoint: Endpoint,
    /// Clients of a closed loop, streams that are held, or the most that an open loop has on their way at once.
    #[arg(long, default_value_t = 1)]
    pub streams: usize,
    /// Words of a prompt, and about as many tokens.
    #[arg(long, default_value_t = 100)]
    pub prompt_tokens: usize,
    /// Of those, the ones with which all prompts begin.
    #[arg(long, default_value_t = 0)]
    pub shared_tokens: usize,
    /// Tokens of an answer.
    #[arg(long, default_value_t = 128)]
    pub answer_tokens: u32,
    /// Requests of each client, or of the open loop in all; else as many as there is time for.
    #[arg(long)]
    pub requests: Option<u64>,
    /// After this no request begins; streams that are held are then cut.
    #[arg(long, default_value_t = 600.0)]
    pub seconds: f64,
    /// Open loop: requests a second. Hold: streams that are opened a second.
    #[arg(long)]
    pub rate: Option<f64>,
    /// Opens all streams and holds them. Once each has had a text, times between texts count.
    #[arg(long, requires = "rate")]
    pub hold: bool,
    /// Time from text to text as it should be: its jitter is told.
    #[arg(long)]
    pub period_ms: Option<f64>,
    /// Loads of the same seed have the same prompts, and others have others.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A connection of its own for each request. Else they are kept, and a server without `TCP_NODELAY` waits for acknowledgements.
    #[arg(long)]
    pub fresh: bool,
    /// More fields of requests, as a JSON object.
    #[arg(long, default_value = "{}", value_parser = object)]
    pub extra: Map<String, Value>,
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// What is asked for.
#[derive(Copy, Clone, Eq, PartialEq, Debug, ValueEnum)]
pub enum Endpoint {
    /// `/v1/completions`: the prompt as it is.
    Completions,
    /// `/v1/chat/completions`: the prompt as a message of the user, which the server puts into a template.
    Chat,
}

impl Endpoint {
    /// Where it is.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

impl Load {
    /// One client that asks a server once, for 128 tokens after 100.
    pub(in crate::bench) fn new(to: SocketAddr, model: &str) -> Self {
        Self {
            to,
            model: model.to_owned(),
            endpoint: Endpoint::Completions,
            streams: 1,
            prompt_tokens: 100,
            shared_tokens: 0,
            answer_tokens: 128,
            requests: Some(1),
            seconds: 600.0,
            rate: None,
            hold: false,
            period_ms: None,
            seed: 1,
            fresh: false,
            extra: Map::new(),
        }
    }

    /// As `bench load` would take it.
    pub(super) fn arguments(&self) -> Vec<String> {
        let endpoint = self.endpoint.to_possible_value();
        let endpoint = endpoint.map(|value| value.get_name().to_owned());
        let extra = Value::from(self.extra.clone());
        let valued = [
            ("--to", Some(self.to.to_string())),
            ("--model", Some(self.model.clone())),
            ("--endpoint", endpoint),
            ("--streams", Some(self.streams.to_string())),
            ("--prompt-tokens", Some(self.prompt_tokens.to_string())),
            ("--shared-tokens", Some(self.shared_tokens.to_string())),
            ("--answer-tokens", Some(self.answer_tokens.to_string())),
            ("--requests", self.requests.map(|count| count.to_string())),
            ("--seconds", Some(self.seconds.to_string())),
            ("--rate", self.rate.map(|rate| rate.to_string())),
            ("--period-ms", self.period_ms.map(|period| period.to_string())),
            ("--seed", Some(self.seed.to_string())),
            ("--extra", Some(extra.to_string())),
        ];
        let valued = valued
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let flags = [("--hold", self.hold), ("--fresh", self.fresh)];
        let flags = flags.into_iter().filter(|(_, set)| *set);
        valued
            .flat_map(|(name, value)| [name.to_owned(), value])
            .chain(flags.map(|(name, _)| name.to_owned()))
            .collect()
    }

    /// The body of a client's request number `turn`.
    pub(in crate::bench) fn body(&self, client: u64, turn: u64) -> Vec<u8> {
        let prompt = prompt::words(
            self.seed,
            [client, turn],
            self.shared_tokens,
            self.prompt_tokens.max(1),
        );
        let mut body = json!({
            "model": self.model, "max_tokens": self.answer_tokens, "temperature": 0.0, "ignore_eos": true,
            "stream": true, "stream_options": { "include_usage": true },
        });
        match self.endpoint {
            Endpoint::Completions => body["prompt"] = prompt.into(),
            Endpoint::Chat => body["messages"] = json!([{ "role": "user", "content": prompt }]),
        }
        if let Some(fields) = body.as_object_mut() {
            fields.extend(self.extra.clone());
        }
        body.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        load: Load,
    }

    #[test]
    fn a_load_is_the_same_in_another_process() {
        let mut load = Load::new(([127, 0, 0, 1], 80).into(), "a model");
        let again = |load: &Load| {
            let arguments = ["load".to_owned()].into_iter().chain(load.arguments());
            Whole::try_parse_from(arguments).unwrap().load
        };
        assert_eq!(again(&load), load);
        load = Load {
            endpoint: Endpoint::Chat,
            requests: None,
            rate: Some(2.5),
            hold: true,
            period_ms: Some(500.0),
            fresh: true,
            extra: object("{\"n\":2}").unwrap(),
            ..load
        };
        assert_eq!(again(&load), load);
        let body: Value = serde_json::from_slice(&load.body(0, 0)).unwrap();
        assert_eq!(body["n"], 2);
        assert_eq!(body["messages"][0]["role"], "user");
    }
}
