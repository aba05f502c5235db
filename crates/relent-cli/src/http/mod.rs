//! `relent http`: one HTTP request under a policy.
//!
//! The protocol is a well-kept client's (reqwest, rustls); the judgement is ours: what a failure means, whether the
//! request may be sent again and when is decided by `relent::wire` and a `relent::Call`, and the client's own retries
//! are off, so that the attempts told are the attempts made. Each attempt has a connection of its own.

mod above;
mod address;
mod args;
mod attempt;
mod backlog;
mod beside;
mod body;
mod client;
mod coding;
mod engine;
mod exchange;
mod exit;
mod failure;
mod form;
mod frames;
#[doc(hidden)]
pub mod fuzzed;
mod greeting;
mod head;
mod headers;
mod hedge;
pub(crate) mod hints;
mod idle;
mod left;
mod linger;
mod most;
mod narrator;
mod part;
mod patient;
mod ping;
mod progress;
mod proxy;
mod redirect;
mod request;
mod resolve;
mod rest;
mod resume;
mod signals;
mod sink;
mod socket;
mod sparse;
mod stop;
mod target;
mod tls;
mod whole;
mod word;
mod write_out;

pub(crate) use args::Args;

use crate::{
    dumps,
    ear::{self, Ear},
    guard, outer, redact, stderr,
    talk::{self, Fault, plain},
    upstream,
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use relent::wire;
use sha2::{Digest, Sha256};
use std::{
    cell::{Cell, RefCell},
    env, iter,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};
use url::Url;

/// Makes the request that the flags describe.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Fault> {
    match prepare(args, Instant::now()) {
        Ok(engine) => engine.run(),
        Err(fault) => {
            // What is wrong now is as wrong the next time, unless it passes. Nothing was sent.
            if !fault.may_pass() {
                let _ = outer::say(relent::Verdict::Permanent, fault.code());
            }
            match args.talk.json {
                true => {
                    narrator::Narrator::fault(&fault);
                    Ok(ExitCode::from(fault.code()))
                }
                false => Err(fault),
            }
        }
    }
}

/// Everything that can be wrong before a byte is sent is found here.
fn prepare(args: &Args, began: Instant) -> Result<engine::Engine, Fault> {
    dumps::forbid();
    let deaf = |error| Fault::new(format!("cannot catch signals: {}", plain(&error)));
    // What is read here may be a pipe, or lie on a file system that is silent.
    let ended = ear::be_ended().map_err(deaf)?;
    let policy = args.policy.policy_said(args.talk)?;
    let limit = limit(args, &policy, began);
    let patience = idle::Patience(patience(args)?);
    let write_out = args.write_out.as_deref().map(write_out::WriteOut::parse).transpose()?;
    let request = request::Request::resolve(args, limit.left())?;
    let rules = request::rules(args)?;
    let recipe = client::recipe(args, &request)?;
    let client = recipe.client()?;
    let whole = args.policy.whole();
    let described = match hedge::is_allowed(&request.meant(), &request.headers) {
        true => args.upstream.draft(&whole)?,
        false => {
            let why = format!("{} without an Idempotency-Key is sent once at a time", request.named());
            guard::unhedged(&args.upstream, &whole, args.talk, &why)?
        }
    };
    let upstream = guard::upstream(described.as_ref())?;
    let sharing = upstream::sharing_of(described.as_ref(), None, limit.ends(), args.talk)?;
    let sharing = sharing.map(|sharing| sharing.for_calls_of(policy.settings().max_elapsed));
    let file = file(args, &request.url)?;
    let goes_on = goes_on(args, &request, &recipe, file.as_deref())?;
    let ear = Ear::open().map_err(deaf)?;
    ended.no_more();
    let max_size = most::given(args.max_size.as_deref())?;
    let bounds = part::Bounds { ear: &ear, ends: limit.ends(), max_size };
    let wants_to_go_on = goes_on.is_some();
    let mut output = sink::Output::prepare(file.as_deref(), goes_on, &bounds)?;
    if let Some(why) = output.begins_anew().filter(|_| wants_to_go_on) {
        talk::remark(args.talk, &format!("-C - begins anew: {why}"));
    }
    if output.loses_its_group()? {
        talk::remark(
            args.talk,
            "the file's group is one that you cannot give: nobody but its owner may do more with the new one than both that group and everybody could",
        );
    }
    let is_stdout = matches!(output, sink::Output::Stdout { .. });
    Ok(engine::Engine {
        policy,
        limit,
        seed: args.policy.seed(),
        upstream: upstream.map(Arc::new),
        sharing: Cell::new(sharing),
        above: above::Above::default(),
        retry_unsafe: args.retry_unsafe,
        fail_with_body: args.fail_with_body,
        terms: attempt::Terms {
            request,
            rules,
            redirects: args.location,
            compressed: args.compressed,
            include: args.include,
            columns: output.columns(),
            patience,
            talk: args.talk,
            lost: RefCell::default(),
        },
        line: attempt::Line::of(client),
        recipe,
        ear,
        output,
        max_size,
        file: file.filter(|_| !is_stdout).map(|file| file.to_string_lossy().into_owned()),
        write_out,
        talk: args.talk,
    })
}

/// When everything ends: by `--timeout`, by the policy's file, or by the `relent run` that this runs in.
fn limit(args: &Args, policy: &relent::Policy, began: Instant) -> engine::Limit {
    let given = [args.policy.time_limit(), policy.settings().timeout].into_iter().flatten().min();
    let is_ours = outer::time_left().is_none_or(|left| given.is_some_and(|given| given < left));
    let limit = engine::Limit { given, is_ours, began };
    stderr::is_limited(limit.ends());
    limit
}

fn patience(args: &Args) -> Result<Option<std::time::Duration>, Fault> {
    if args.idle_timeout == "unlimited" {
        return Ok(None);
    }
    let limit = relent::duration::parse_duration(&args.idle_timeout)
        .map_err(|bad| Fault::new(format!("--idle-timeout: {bad}")).hint(bad.hint()))?;
    match limit.is_zero() {
        true => Err(Fault::new("--idle-timeout: no answer comes in no time").hint("unlimited waits for ever")),
        false => Ok(Some(limit)),
    }
}

/// The file that `-o` or `-O` names.
fn file(args: &Args, url: &Url) -> Result<Option<PathBuf>, Fault> {
    if !args.remote_name {
        return Ok(args.output.clone());
    }
    let name = url.path_segments().and_then(|mut parts| parts.next_back()).filter(|name| !name.is_empty());
    // It is told as if it had been given.
    redact::know(iter::empty(), name.into_iter());
    // One that is called like standard output is a file all the same.
    name.map(|name| Some(PathBuf::from(if name == "-" { "./-" } else { name }))).ok_or_else(|| {
        Fault::new("-O: the path of the URL does not end in a name").hint("-o FILE says what to call it")
    })
}

/// What is asked for, as it may be written down: without secrets, and with a digest of all that a server may answer by, since two
/// URLs may differ in a secret alone, and two servers have one name.
fn source(args: &Args, request: &request::Request, recipe: &client::Recipe) -> String {
    let mut digest = Sha256::new();
    digest.update(request.url.as_str());
    // One name leads to another socket from another folder.
    let socket = args.unix_socket.as_deref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    digest.update(format!("\0{:?}\0{}", (&args.resolve, socket), recipe.proxies()));
    // Who asks, and who is believed: what came unchecked is not handed on as what was checked.
    digest.update(format!("\0{:?}", (args.insecure, &args.cacert)));
    for certificates in recipe.who() {
        let mut certificates: Vec<&[u8]> = certificates.iter().map(AsRef::as_ref).collect();
        certificates.sort_unstable();
        digest.update(format!("\0{}\0", certificates.len()));
        certificates.iter().for_each(|certificate| digest.update(certificate));
    }
    // What makes another machine of a name (resolver(7)).
    for name in ["HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS"] {
        digest.update(format!("\0{:?}", env::var_os(name)));
    }
    for (name, value) in &request.headers {
        // This one is another each time.
        if name.as_str() != wire::IDEMPOTENCY_KEY {
            digest.update([b"\0", name.as_str().as_bytes(), b"\0", value.as_bytes()].concat());
        }
    }
    format!("{} {}", redact::url(request.url.as_str()), BASE64_STANDARD.encode(digest.finalize()))
}

/// With `-C -`: what the part is a part of, as it may be written down.
fn goes_on(
    args: &Args,
    request: &request::Request,
    recipe: &client::Recipe,
    file: Option<&Path>,
) -> Result<Option<String>, Fault> {
    match args.continue_at.as_deref() {
        None => Ok(None),
        Some("-")
            if request.meant() != http::Method::GET
                || request.body.is_some()
                || request.headers.contains_key(http::header::RANGE) =>
        {
            Err(Fault::new("-C - goes on with a plain GET only").hint("leave out the method, the body and the range"))
        }
        Some("-") if file.is_some_and(|file| file != Path::new("-")) => Ok(Some(source(args, request, recipe))),
        Some("-") => Err(Fault::new("-C - goes on with a file, and none is given").hint("-o FILE or -O names it")),
        Some(_) => Err(Fault::new("-C takes - only: how much is there is found out")
            .hint("-H 'Range: bytes=100-' asks for a part by hand")),
    }
}
