//! `relent store purge`: removes what has expired, a transaction for each batch.

use super::{
    args::PurgeArgs,
    open::{IfMissing, with},
    place,
};
use crate::{
    breaks::answer,
    json::Object,
    talk::{Fault, write_out},
};
use std::process::ExitCode;

pub(super) fn run(args: &PurgeArgs) -> Result<ExitCode, Fault> {
    let (url, removed) = with(&args.to, IfMissing::Say, async |url, store| Ok((url, store.purge(args.batch).await?)))?;
    let text = match args.to.json {
        true => Object::new().text("store", &place::shown(&url)).number("removed", removed).finish() + "\n",
        false if removed == 1 => "removed 1 that had expired\n".to_owned(),
        false => format!("removed {removed} that had expired\n"),
    };
    write_out(answer(&text, args.to.json).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
