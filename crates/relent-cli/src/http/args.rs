//! The flags of `relent http`.

use super::exit;
use crate::{policy_args::CallArgs, retried, talk::TalkArgs, upstream_args::UpstreamArgs};
use clap::ArgAction;
use std::path::PathBuf;

const USAGE: &str = "relent http [OPTIONS] [METHOD] URL";

/// The flags of `relent http`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true, disable_help_flag = true, override_usage = USAGE, after_help = retried::and(exit::TABLE))]
pub struct Args {
    /// The method, then the URL.
    #[arg(value_name = "METHOD URL", hide = true)]
    pub target: Vec<String>,

    /// A header to send; may be repeated. @FILE has one a line.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "Request")]
    pub headers: Vec<String>,

    /// The body: a text, @FILE or @- (stdin); texts are joined with &.
    #[arg(short, long, alias = "data-binary", value_name = "DATA", help_heading = "Request", conflicts_with = "head")]
    pub data: Vec<String>,

    /// A field of a form: NAME=TEXT, NAME=@FILE or NAME=<FILE.
    #[arg(short = 'F', long, value_name = "FIELD", help_heading = "Request", conflicts_with_all = ["data", "head"])]
    pub form: Vec<String>,

    /// The method [default: GET; POST with a body, HEAD with -I].
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = "Request")]
    pub request: Option<String>,

    /// Ask for the head only (HEAD), and print it.
    #[arg(short = 'I', long, help_heading = "Request")]
    pub head: bool,

    /// Follow redirects, at most 10 in an attempt.
    #[arg(short = 'L', long, help_heading = "Request")]
    pub location: bool,

    /// Basic authentication. -H @FILE keeps secrets off the process list.
    #[arg(short, long, value_name = "USER:PASSWORD", help_heading = "Request")]
    pub user: Option<String>,

    /// Ask for a compressed body (gzip, br), and undo it.
    #[arg(long, help_heading = "Request")]
    pub compressed: bool,

    /// Send one Idempotency-Key in all attempts; made if none is given.
    #[arg(
        long,
        value_name = "KEY",
        help_heading = "What is retried",
        num_args = 0..=1,
        require_equals = true
    )]
    pub idempotency_key: Option<Option<String>>,

    /// Retry POST, PATCH and other unsafe methods as if they were safe.
    #[arg(long, help_heading = "What is retried")]
    pub retry_unsafe: bool,

    /// Retry on these statuses too: 409,423 or 520-529.
    #[arg(long, value_name = "STATUSES", help_heading = "What is retried", value_delimiter = ',')]
    pub retry_on_status: Vec<String>,

    /// Do not retry on these statuses.
    #[arg(long, value_name = "STATUSES", help_heading = "What is retried", value_delimiter = ',')]
    pub stop_on_status: Vec<String>,

    /// Write the body to FILE when it is complete, not before.
    #[arg(short, long, value_name = "FILE", help_heading = "Response")]
    pub output: Option<PathBuf>,

    /// The same, FILE being the last part of the URL's path.
    #[arg(short = 'O', long, help_heading = "Response", conflicts_with = "output")]
    pub remote_name: bool,

    /// Go on with what an earlier run left of FILE: -C -
    #[arg(short = 'C', long, value_name = "-", help_heading = "Response", allow_hyphen_values = true,
          verbatim_doc_comment, conflicts_with_all = ["include", "compressed"])]
    pub continue_at: Option<String>,

    /// Print the head before the body.
    #[arg(short, long, help_heading = "Response")]
    pub include: bool,

    /// Print this at the end: %{http_code}, %{time_total}, ...
    #[arg(short, long, value_name = "FORMAT", help_heading = "Response", allow_hyphen_values = true)]
    pub write_out: Option<String>,

    /// Print the body of a failed response too, on stdout.
    #[arg(long, help_heading = "Response")]
    pub fail_with_body: bool,

    /// The largest body [default: 64GiB where it grows in FILE, else 1GiB]; 1 MiB is kept in memory.
    #[arg(long, value_name = "SIZE", help_heading = "Response")]
    pub max_size: Option<String>,

    /// The longest that connecting may take, with TLS.
    #[arg(long, value_name = "DURATION", help_heading = "Connection", default_value = "10s")]
    pub connect_timeout: String,

    /// The longest without a byte.
    #[arg(long, value_name = "DURATION", help_heading = "Connection", default_value = "60s")]
    pub idle_timeout: String,

    /// A proxy: http, https, socks4, socks4a, socks5, socks5h.
    #[arg(short = 'x', long, value_name = "URL", help_heading = "Connection")]
    pub proxy: Option<String>,

    /// Its user.
    #[arg(short = 'U', long, value_name = "USER:PASSWORD", help_heading = "Connection")]
    pub proxy_user: Option<String>,

    /// Hosts that no proxy is used for, or *.
    #[arg(long, value_name = "HOSTS", help_heading = "Connection")]
    pub noproxy: Option<String>,

    /// Where a host is: HOST:PORT:ADDRESS.
    #[arg(long, value_name = "WHERE", help_heading = "Connection")]
    pub resolve: Vec<String>,

    /// Connect to this socket instead of the URL's host.
    #[arg(long, value_name = "FILE", help_heading = "Connection", conflicts_with = "proxy")]
    pub unix_socket: Option<PathBuf>,

    /// Trust the certificates in FILE (PEM) instead of the system's.
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub cacert: Option<PathBuf>,

    /// Trust any certificate, whoever is in between.
    #[arg(short = 'k', long, help_heading = "Connection")]
    pub insecure: bool,

    /// The client's certificate (PEM), perhaps with its key.
    #[arg(short = 'E', long, value_name = "FILE", help_heading = "Connection")]
    pub cert: Option<PathBuf>,

    /// The key of the client's certificate (PEM).
    #[arg(long, value_name = "FILE", help_heading = "Connection", requires = "cert")]
    pub key: Option<PathBuf>,

    /// Speak HTTP/1.1 only.
    #[arg(long = "http1.1", help_heading = "Connection", conflicts_with = "http2")]
    pub http1: bool,

    /// Speak HTTP/2 only, without TLS too.
    #[arg(long, help_heading = "Connection")]
    pub http2: bool,

    /// When to try again, and when to stop.
    #[command(flatten)]
    pub policy: CallArgs,

    /// What protects the server.
    #[command(flatten)]
    pub(crate) upstream: UpstreamArgs,

    /// How much to say.
    #[command(flatten)]
    pub talk: TalkArgs,

    /// Print help.
    #[arg(short, long, action = ArgAction::Help, help_heading = "Output")]
    pub help: Option<bool>,
}
