//! Names of attributes. OpenTelemetry's semantic conventions for generative AI have the first word; what they do not speak of begins with
//! `innkeeper.`, with the unit last.

/// What was asked for: a conversation to go on, or a text.
pub(super) const OPERATION: &str = "gen_ai.operation.name";
/// Who answers: always [`PROVIDER_NAME`].
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const PROVIDER_NAME: &str = "innkeeper";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(super) const TEMPERATURE: &str = "gen_ai.request.temperature";
pub(super) const TOP_P: &str = "gen_ai.request.top_p";
pub(super) const SEED: &str = "gen_ai.request.seed";
/// How many answers; left out if one.
pub(super) const CHOICES: &str = "gen_ai.request.choice.count";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Tokens of the prompt that need not be computed.
pub(super) const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// From arrival to the first token, in seconds.
pub(super) const FIRST_TOKEN_S: &str = "gen_ai.response.time_to_first_chunk";
/// The reason of a failure, of the general conventions.
pub(super) const ERROR: &str = "error.type";

pub(super) const REQUEST_ID: &str = "innkeeper.request_id";
pub(super) const ROOM: &str = "innkeeper.room";
pub(super) const INDEX: &str = "innkeeper.index";
pub(super) const GENERATION: &str = "innkeeper.generation";
pub(super) const PRIORITY: &str = "innkeeper.priority";
pub(super) const OUTCOME: &str = "innkeeper.outcome";
pub(super) const REASON: &str = "innkeeper.reason";
/// The live phase that the outcome ended.
pub(super) const ENDED_IN: &str = "innkeeper.ended_in";
pub(super) const ATTEMPTS: &str = "innkeeper.attempts";
pub(super) const FENCED: &str = "innkeeper.fenced";
/// Why the trace is kept.
pub(super) const KEPT: &str = "innkeeper.kept";
pub(super) const EVENTS_LEFT_OUT: &str = "innkeeper.events_left_out";
pub(super) const WORKER: &str = "innkeeper.worker";
pub(super) const PREFILL: &str = "innkeeper.prefill_worker";
pub(super) const DECODE: &str = "innkeeper.decode_worker";
pub(super) const SOURCE: &str = "innkeeper.source";
pub(super) const READER: &str = "innkeeper.reader";
pub(super) const TRANSPORT: &str = "innkeeper.transport";
pub(super) const BYTES: &str = "innkeeper.bytes";
pub(super) const DESCRIPTORS: &str = "innkeeper.descriptors";
pub(super) const READ_MICROS: &str = "innkeeper.read_us";
pub(super) const BLOCKS: &str = "innkeeper.blocks";
pub(super) const CACHED_BLOCKS: &str = "innkeeper.cached_blocks";
pub(super) const POSITIONS: &str = "innkeeper.positions";
pub(super) const OF: &str = "innkeeper.of";
pub(super) const TOKENS: &str = "innkeeper.tokens";
pub(super) const FROM: &str = "innkeeper.from";
pub(super) const STALLED_MS: &str = "innkeeper.stalled_ms";
pub(super) const LONGEST_GAP_MS: &str = "innkeeper.longest_gap_ms";
pub(super) const WHY: &str = "innkeeper.why";
pub(super) const RETRIED: &str = "innkeeper.retried";
pub(super) const PROOF: &str = "innkeeper.proof";
pub(super) const TOLD: &str = "innkeeper.told";
pub(super) const PHASE: &str = "innkeeper.phase";
pub(super) const DEATHS: &str = "innkeeper.deaths";
pub(super) const WORKERS: &str = "innkeeper.workers";
/// Who may be touching blocks.
pub(super) const HOLDS: &str = "innkeeper.holds";
/// In what way a link goes: always `replaces`.
pub(super) const LINK: &str = "innkeeper.link";
