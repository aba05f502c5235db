//! `relent http`: one HTTP request under a policy.
//!
//! The protocol is a well-kept client's (reqwest, rustls); the judgement is ours: what a failure means, whether the
//! request may be sent again and when is decided by `relent::wire` and a `relent::Call`, and the client's own retries
//! are off, so that the attempts told are the attempts made. Each attempt has a connection of its own.

mod args;
mod attempt;
mod body;
mod client;
mod engine;
mod exit;
mod failure;
mod head;
mod headers;
mod narrator;
mod progress;
mod request;
mod resume;
mod sink;

pub(crate) use args::Args;

use crate::talk::{EXIT_FAULT, Fault};
use std::process::ExitCode;

/// Makes the request that the flags describe.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Fault> {
    match prepare(args) {
        Ok(engine) => engine.run(),
        Err(fault) if args.talk.json => {
            narrator::Narrator::fault(&fault);
            Ok(ExitCode::from(EXIT_FAULT))
        }
        Err(fault) => Err(fault),
    }
}

/// Everything that can be wrong before a byte is sent is found here.
fn prepare(args: &Args) -> Result<engine::Engine, Fault> {
    let policy = args.policy.policy_said(args.talk)?;
    let request = request::Request::resolve(args)?;
    let rules = request::rules(args)?;
    let client = client::build(args, &request.url)?;
    let output = sink::Output::prepare(args.output.as_deref())?;
    Ok(engine::Engine {
        policy,
        seed: args.policy.seed(),
        rules,
        retry_unsafe: args.retry_unsafe,
        fail_with_body: args.fail_with_body,
        to_file: !matches!(output, sink::Output::Stdout),
        redirects: args.location,
        request,
        client,
        output,
        talk: args.talk,
    })
}
