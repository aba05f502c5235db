//! The flags of `relent http`.

use super::exit;
use crate::{policy_args::CallArgs, talk::TalkArgs};
use std::path::PathBuf;

const USAGE: &str = "relent http [OPTIONS] [METHOD] URL";

/// The flags of `relent http`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true, override_usage = USAGE, after_help = exit::TABLE)]
pub struct Args {
    /// The method [default: GET, with --data POST, with --head HEAD], then the URL.
    #[arg(value_name = "METHOD URL")]
    pub target: Vec<String>,

    /// A header to send; may be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "Request")]
    pub headers: Vec<String>,

    /// The body: a text, @FILE or @- (stdin), the same in every attempt; several texts are joined with &.
    #[arg(short, long, value_name = "DATA", help_heading = "Request", conflicts_with = "head")]
    pub data: Vec<String>,

    /// The method, where curl has it.
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = "Request")]
    pub request: Option<String>,

    /// Ask for the head only (HEAD), and print it.
    #[arg(short = 'I', long, help_heading = "Request")]
    pub head: bool,

    /// Follow redirects, at most 10 in an attempt.
    #[arg(short = 'L', long, help_heading = "Request")]
    pub location: bool,

    /// Send an Idempotency-Key, one for all attempts; made if none is given.
    #[arg(
        long,
        value_name = "KEY",
        help_heading = "What is retried",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub idempotency_key: Option<String>,

    /// Retry POST, PATCH and other unsafe methods as if they were safe.
    #[arg(long, help_heading = "What is retried")]
    pub retry_unsafe: bool,

    /// Retry on these statuses too: 409,423 or 520-529.
    #[arg(long, value_name = "STATUSES", help_heading = "What is retried", value_delimiter = ',')]
    pub retry_on_status: Vec<String>,

    /// Do not retry on these statuses.
    #[arg(long, value_name = "STATUSES", help_heading = "What is retried", value_delimiter = ',')]
    pub stop_on_status: Vec<String>,

    /// Write the body to FILE when it is complete; until then FILE stays as it was.
    #[arg(short, long, value_name = "FILE", help_heading = "Response")]
    pub output: Option<PathBuf>,

    /// Print the body of a failed response too, on stdout.
    #[arg(long, help_heading = "Response")]
    pub fail_with_body: bool,

    /// The longest that connecting may take, TLS included.
    #[arg(long, value_name = "DURATION", help_heading = "Connection", default_value = "10s")]
    pub connect_timeout: String,

    /// Trust the certificate authorities in FILE (PEM) instead of the system's.
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub cacert: Option<PathBuf>,

    /// Speak HTTP/1.1 only.
    #[arg(long = "http1.1", help_heading = "Connection", conflicts_with = "http2")]
    pub http1: bool,

    /// Speak HTTP/2 only, without TLS too.
    #[arg(long, help_heading = "Connection")]
    pub http2: bool,

    /// When to try again, and when to stop.
    #[command(flatten)]
    pub policy: CallArgs,

    /// How much to say.
    #[command(flatten)]
    pub talk: TalkArgs,
}
