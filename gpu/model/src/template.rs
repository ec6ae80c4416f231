//! Chat templates: the Jinja text in a model file that turns messages into a prompt.
//!
//! A template can read nothing but what [`ChatTemplate::render`] gives it; its steps, its output, its recursion and the numbers in it
//! are bounded, and where the engine panics over it, it has failed. No content of a message can break out of that.
//!
//! What is not bounded is what one step may do to a value that a template was written to blow up: a text that is doubled over and
//! over, a list times a number that a filter then walks over, a namespace that is put into itself (it is never freed, and printing it
//! overflows the stack). The engine has no place where that could be refused. So a model file is trusted to that extent: one that
//! was made to do harm can end the process that renders its template.

mod bounded;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, context};
use serde::{Deserialize, Serialize};

/// Steps of the template machine a rendering may take.
const FUEL: u64 = 2_000_000;
/// Bytes a rendering may produce.
const OUTPUT_BYTES: usize = 64 << 20;
/// Nested macro calls and includes.
const RECURSION: usize = 100;

/// Why a conversation has no prompt.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The template itself is not valid.
    #[error("the model's chat template cannot be used: {0}")]
    Invalid(String),
    /// The template refused the conversation (`raise_exception`).
    #[error("the model's chat template refuses this conversation: {0}")]
    Refused(String),
    /// Rendering the conversation takes more steps or gives more text than is allowed.
    #[error("the conversation is too long for the model's chat template: {0}")]
    TooLong(String),
    /// It failed.
    #[error("the model's chat template failed: {0}")]
    Failed(String),
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant`, or what else the template knows.
    pub role: String,
    /// What was said.
    pub content: String,
}

/// A compiled chat template. Immutable; share it.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

const NAME: &str = "chat";

impl ChatTemplate {
    /// Compiles a template. `bos` and `eos` are the texts of `bos_token` and `eos_token` in it.
    ///
    /// # Errors
    /// When it is not valid Jinja.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(RECURSION);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        // What `transformers` sets, so that templates render as their authors saw them.
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        bounded::register(&mut environment);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment.add_filter("tojson", to_json);
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|e| TemplateError::Invalid(describe(&e)))?;
        Ok(Self {
            environment,
            bos: bos.to_owned(),
            eos: eos.to_owned(),
        })
    }

    /// The prompt of a conversation. With `add_generation_prompt` it ends where the assistant's next message begins.
    ///
    /// # Errors
    /// When the template refuses the conversation, fails, or exceeds its limits.
    pub fn render(
        &self,
        messages: &[ChatMessage],
        add_generation_prompt: bool,
    ) -> Result<String, TemplateError> {
        let template = self
            .environment
            .get_template(NAME)
            .map_err(|e| TemplateError::Invalid(describe(&e)))?;
        let values =
            context! { messages, add_generation_prompt, bos_token => self.bos, eos_token => self.eos };
        let mut out = Bounded(Vec::new());
        // The engine has places where it indexes and divides unchecked: `[][::-1]`, walked over, is one.
        catch_unwind(AssertUnwindSafe(|| template.render_captured_to(values, &mut out)))
            .map_err(|_| TemplateError::Failed("the template engine cannot do what it asks for".to_owned()))?
            .map_err(|e| failure(&e))?;
        String::from_utf8(out.0).map_err(|_| TemplateError::Failed("its output is not UTF-8".to_owned()))
    }
}

/// The marker by which a refusal is told from a failure.
const REFUSAL: &str = "raise_exception: ";

fn raise_exception(message: &str) -> Result<String, Error> {
    Err(Error::new(
        ErrorKind::InvalidOperation,
        format!("{REFUSAL}{message}"),
    ))
}

fn failure(error: &Error) -> TemplateError {
    match error.detail().and_then(|d| d.strip_prefix(REFUSAL)) {
        Some(refusal) => TemplateError::Refused(refusal.to_owned()),
        // Nothing but `Bounded` refuses to be written to.
        None if matches!(error.kind(), ErrorKind::OutOfFuel | ErrorKind::WriteFailure) => {
            TemplateError::TooLong(describe(error))
        }
        None => TemplateError::Failed(describe(error)),
    }
}

fn describe(error: &Error) -> String {
    match error.line() {
        Some(line) => format!("{error}, line {line}"),
        None => error.to_string(),
    }
}

/// Python's `tojson` as `transformers` defines it: spaces behind separators, no HTML escapes, `indent`.
#[allow(
    clippy::needless_pass_by_value,
    reason = "the template engine's calling convention"
)]
fn to_json(value: &minijinja::Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let _: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let mut out = Vec::new();
    let serialized = match indent {
        Some(n) => {
            let pad = " ".repeat(n.min(16));
            let layout = serde_json::ser::PrettyFormatter::with_indent(pad.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, layout))
        }
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, PythonJson)),
    };
    serialized.map_err(|e| Error::new(ErrorKind::BadSerialization, e.to_string()))?;
    String::from_utf8(out).map_err(|e| Error::new(ErrorKind::BadSerialization, e.to_string()))
}

/// `json.dumps` with its default separators.
struct PythonJson;

impl serde_json::ser::Formatter for PythonJson {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// A prompt must be a function of its conversation, so that a retry elsewhere gives the same tokens: there is no clock here, and a
/// template that asks for today's date gets a fixed one.
fn strftime_now(format: &str) -> String {
    const DAY: [(&str, &str); 6] = [
        ("%d", "26"),
        ("%b", "Jul"),
        ("%B", "July"),
        ("%m", "07"),
        ("%Y", "2024"),
        ("%y", "24"),
    ];
    DAY.iter()
        .fold(format.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Collects output up to [`OUTPUT_BYTES`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_BYTES {
            return Err(io::Error::other("output too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
