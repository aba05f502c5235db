//! `relent upstream`: what all processes know of a far side, and a hand on its breaker; and how one process shares it.

mod args;
mod list;
pub(crate) mod rules;
pub(crate) mod sharing;

pub(crate) use args::Args;

use crate::{
    breaks::answer,
    dumps,
    ear::Ear,
    escape::escape,
    policy_file::{Beside, PolicyFile},
    redact,
    store::{
        args::StoreArgs,
        counted, fault,
        open::{IfMissing, with},
        place,
    },
    talk::{self, Fault, TalkArgs, note, plain, write_out},
    typed::typed,
    upstream_args::Described,
};
use args::{Hand, What};
use relent_store::{Held, Key};
use rules::Rules;
use sharing::Sharing;
use std::{process::ExitCode, time::Instant};

pub(crate) fn run(args: &Args) -> ExitCode {
    dumps::forbid();
    let (json, outcome) = match &args.what {
        None => (args.list.to.json, list::list(&args.list)),
        Some(What::List(list)) => (list.to.json, list::list(list)),
        Some(What::Watch(watch)) => (watch.list.to.json, list::watch(watch)),
        Some(What::Open(hand)) => (hand.to.json, hold(hand, Some(Held::Open))),
        Some(What::Close(hand)) => (hand.to.json, hold(hand, Some(Held::Closed))),
        Some(What::Release(hand)) => (hand.to.json, hold(hand, None)),
    };
    outcome.unwrap_or_else(|fault: Fault| fault.tell_as(json))
}

/// Holds a breaker, or lets it go.
fn hold(hand: &Hand, held: Option<Held>) -> Result<ExitCode, Fault> {
    let name = &hand.name;
    let to = of_the_file(&hand.to, hand.policy.as_deref(), Some(&name.to_string()))?;
    let missing = if to.store == hand.to.store { IfMissing::Make } else { IfMissing::Say };
    let url = with(&to, missing, async |url, store| store.hold(name, held).await.map(|()| url))?;
    let (word, what) = match held {
        Some(Held::Open) => ("open", "is held open: no attempt is let through"),
        Some(Held::Closed) => ("closed", "is held closed: every attempt is let through"),
        None => ("none", "decides for itself again"),
    };
    let text = match hand.to.json {
        true => {
            let mut object = crate::json::Object::new();
            object
                .text("store", &place::shown(&url))
                .text("name", &counted::told(name, name.as_bytes()))
                .text("held", word)
                .finish()
        }
        false => {
            let until = match held {
                Some(_) => format!(", until {}", release(hand)),
                None => String::new(),
            };
            let name = counted::told(name, name.as_bytes());
            escape(&format!("{name} {what}{until} (in {})", place::shown(&url))).into_owned()
        }
    };
    write_out(answer(&format!("{text}\n"), hand.to.json).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The command that lets a breaker go, to be typed; in words, if its name is not told.
fn release(hand: &Hand) -> String {
    let name = String::from_utf8_lossy(hand.name.as_bytes());
    if redact::text(&name) != name {
        return "relent upstream release lets it go".to_owned();
    }
    match name.starts_with('-') {
        true => format!("relent upstream release{} -- {}", hand.where_to(), typed(&name)),
        false => format!("relent upstream release {}{}", typed(&name), hand.where_to()),
    }
}

/// The flags of the store, with that of the policy file where no flag names one: of this upstream, or of the first that
/// has one.
///
/// # Errors
///
/// The file knows upstreams, and this one is not among them or shares nothing: nobody would heed what is said of it. Or nobody
/// named the file, and so the store.
fn of_the_file(to: &StoreArgs, policy: Option<&str>, name: Option<&str>) -> Result<StoreArgs, Fault> {
    if to.store.is_some() {
        return Ok(to.clone());
    }
    let file = PolicyFile::read(policy, Beside::Upstreams)?;
    let config = &file.config;
    if file.is_by_chance && config.upstreams().any(|upstream| config.store_of(upstream).is_some()) {
        let shown = file.shown.as_deref().unwrap_or_default();
        return Err(Fault::new(format!(
            "{shown} names a store, and nobody has named {shown}: it was found in this folder"
        ))
        .hint(format!("--policy {} uses it, --store URL another", typed(shown))));
    }
    if config.upstreams().next().is_none() {
        // That it is ignored, perhaps: then the store is another than somebody thinks.
        file.remarks.iter().cloned().for_each(note);
    }
    let of_any = || config.upstreams().find_map(|upstream| config.store_of(upstream));
    let store = match name {
        Some(name) => match config.store_of(name) {
            None if policy.is_some() || config.upstreams().next().is_some() => {
                let file = policy.or(file.shown.as_deref()).unwrap_or("relent.toml");
                return Err(Fault::new(format!("{file} has no [upstream.{name}] with a store"))
                    .hint("name the upstream as the file does, or the store by --store URL"));
            }
            store => store,
        },
        None => of_any(),
    };
    store.map_or(Ok(()), place::of_an_author)?;
    Ok(StoreArgs { store: store.map(str::to_owned), ..to.clone() })
}

/// What a call exits with whose time is over.
const OUT_OF_TIME: u8 = 124;

/// What is shared of an upstream with other processes, if a flag or the file names a store for it, by a call that ends at
/// the deadline.
///
/// # Errors
///
/// There is no place for the store, its URL names none, or there is no thread to ask it.
pub(crate) fn sharing_of(
    described: Option<&Described>,
    flag: Option<&str>,
    deadline: Option<Instant>,
    talk: TalkArgs,
) -> Result<Option<Sharing>, Fault> {
    let Some(described) = described else { return Ok(None) };
    let no_store = described.no_store.as_deref().filter(|_| flag.is_none());
    for said in described.used.as_deref().into_iter().chain(no_store).chain(described.no_hedge.as_deref()) {
        talk::remark(talk, said);
    }
    let (url, look): (_, fn(&str) -> _) = match (flag, described.store.as_deref()) {
        (Some(flag), _) => (flag, |url| place::url(Some(url))),
        (None, Some(named)) => (named, place::of_a_file),
        (None, None) => return Ok(None),
    };
    let name = &described.name;
    let key = Key::new(name).map_err(|error| Fault::new(format!("upstream {name:?}: {error}")))?;
    let given = url.to_owned();
    let found = place::in_time(move || look(&given), deadline, &Ear::default())?;
    let url = found.ok_or_else(|| place::silent(Some(url)).exit(OUT_OF_TIME))??;
    // One that is away may come back, and one that is none never.
    relent_store::Any::check(&url).map_err(|error| fault(&url, &error))?;
    let sharing = Sharing::start(url, key, Rules::of(&described.draft.settings()), deadline);
    sharing.map(Some).map_err(|error| Fault::new(format!("cannot share an upstream: {}", plain(&error))))
}
