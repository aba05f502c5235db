//! The flags of an upstream: what protects the far side. The same in every subcommand that takes them.
//!
//! A flag lies over the policy file part by part: `--budget` takes the place of the file's budget and leaves its breaker.
//! Flags and files are read by the same code (`relent::config`), so a value means the same in both.

use crate::{
    policy_args::{self, PolicyArgs},
    talk::Fault,
    topic,
    typed::typed,
};
use clap::Args;
use relent::{
    HedgeSettings,
    config::{BadSetting, Part, UpstreamDraft},
};
use std::time::Duration;

/// The flags of an upstream: flatten them into a subcommand's flags, then ask for the [`draft`](UpstreamArgs::draft).
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Upstream (relent help upstream tells all of it)")]
pub(crate) struct UpstreamArgs {
    /// What protects the far side: [upstream.NAME] of the policy file.
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) upstream: Option<String>,

    /// How many retries: ratio=0.1,min_per_second=1, or aws-2.1, sre.
    #[arg(long, value_name = "BUDGET", value_parser = part("budget"), hide = true)]
    pub(crate) budget: Option<String>,

    /// When to stop trying: consecutive=5,open_for=30s, or polly.
    #[arg(long, value_name = "BREAKER", value_parser = part("breaker"), hide = true)]
    pub(crate) breaker: Option<String>,

    /// How much at most: rate=100,burst=10, or concurrency=20, aimd.
    #[arg(long, value_name = "LIMIT", value_parser = part("limit"), hide = true)]
    pub(crate) limit: Option<String>,

    /// When to start a second attempt: after=50ms, or quantile=0.95.
    #[arg(long, value_name = "HEDGE", value_parser = part("hedge"), hide = true)]
    pub(crate) hedge: Option<String>,
}

/// An upstream that flags and file describe.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    /// Its name, or `upstream` if flags alone say what it is.
    pub(crate) name: String,
    /// What both say.
    pub(crate) draft: UpstreamDraft,
    /// What flags alone say.
    pub(crate) flags: UpstreamDraft,
    /// The file, if it says anything.
    pub(crate) origin: Option<String>,
    /// That the file is used, if nobody named it, and it is used for this alone.
    pub(crate) used: Option<String>,
    /// The store by which processes share it, if the file names one.
    pub(crate) store: Option<String>,
    /// That its store is left out, since nobody named the file.
    pub(crate) no_store: Option<String>,
    /// That its hedge is, since it asks for too much besides.
    pub(crate) no_hedge: Option<String>,
}

impl Described {
    /// An upstream that nothing is said about.
    pub(crate) fn nothing() -> Described {
        let draft = UpstreamDraft::default();
        Described {
            name: "upstream".to_owned(),
            draft,
            flags: draft,
            origin: None,
            used: None,
            store: None,
            no_store: None,
            no_hedge: None,
        }
    }

    /// What of the file is left out, for people.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &str> {
        self.no_store.as_deref().into_iter().chain(self.no_hedge.as_deref())
    }
}

impl UpstreamArgs {
    /// What the flags and the file say about the upstream; `None` if nothing does.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has no upstream of that name.
    pub(crate) fn draft(&self, policy: &PolicyArgs) -> Result<Option<Described>, Fault> {
        let flags = self.flags()?;
        let is_flagged = flags != UpstreamDraft::default();
        let file = policy.whole_file()?;
        let name = match &self.upstream {
            Some(name) => Some(name.as_str()),
            None => file.config.upstream_of(file.name.as_deref()).filter(|_| file.origin.is_some()),
        };
        let Some(name) = name else {
            let described = Described { draft: flags, flags, ..Described::nothing() };
            return Ok(is_flagged.then_some(described));
        };
        let under = file.config.upstream(name).map_err(|bad| {
            let hint = match file.config.upstreams().next() {
                None => format!("{}, in the file that --policy names", bad.hint),
                Some(_) => bad.hint,
            };
            Fault::new(format!("--upstream {}: {}", typed(name), bad.problem)).hint(hint)
        })?;
        let shown = file.shown.as_deref().unwrap_or_default();
        let note = |part: &str| {
            let file = typed(file.origin.as_deref().unwrap_or(shown));
            format!("the {part} of upstream {name:?} in {shown} is left out: --policy {file} uses it")
        };
        let store = file.config.store_of(name).map(str::to_owned).filter(|_| !file.is_by_chance);
        let no_store = (store.is_none() && file.config.store_of(name).is_some()).then(|| note("store"));
        let mut under = *under;
        // A failure starts the next of them at once.
        let is_flood = |hedge: HedgeSettings| {
            let at_once = 1 + usize::try_from(hedge.at_most).unwrap_or(usize::MAX - 1);
            policy.policy().is_ok_and(|policy| policy_args::is_flood(&policy, at_once))
        };
        let is_too_much = file.is_by_chance
            && flags.hedge == Part::Unsaid
            && (is_storm(under.hedge) || under.hedge.into_option().is_some_and(is_flood));
        if is_too_much {
            under.hedge = Part::Unsaid;
        }
        let no_hedge = is_too_much.then(|| note("hedge, which asks for many attempts at once,"));
        let is_found = file.used.is_none() && policy.policy.is_none();
        let used = is_found.then(|| format!("upstream {name:?} of {shown}, {}", file.why()));
        let (name, draft) = (name.to_owned(), flags.over(under));
        Ok(Some(Described { name, draft, flags, origin: file.shown.clone(), used, store, no_store, no_hedge }))
    }

    /// What the flags alone say.
    ///
    /// # Errors
    ///
    /// A value is none for its key; the flag parser has refused it before.
    pub(crate) fn flags(&self) -> Result<UpstreamDraft, Fault> {
        let mut draft = UpstreamDraft::default();
        let given =
            [("budget", &self.budget), ("breaker", &self.breaker), ("limit", &self.limit), ("hedge", &self.hedge)];
        for (key, value) in given.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?))) {
            draft.set(key, value).map_err(|bad| Fault::new(format!("--{key}: {}", bad.problem)).hint(bad.hint))?;
        }
        Ok(draft)
    }

    /// Whether any flag says something.
    pub(crate) fn is_given(&self) -> bool {
        [&self.upstream, &self.budget, &self.breaker, &self.limit, &self.hedge].iter().any(|flag| flag.is_some())
    }
}

/// Whether a hedge makes many attempts as good as at once. A file that nobody named cannot ask for that.
fn is_storm(hedge: Part<HedgeSettings>) -> bool {
    const AT_ONCE: Duration = Duration::from_millis(1);
    const MANY: u32 = 8;
    hedge.into_option().is_some_and(|hedge| hedge.at_most > MANY || hedge.after.is_some_and(|after| after < AT_ONCE))
}

/// A value parser that takes what a policy file would take for the part.
pub(crate) fn part(key: &'static str) -> impl Fn(&str) -> Result<String, BadSetting> + Clone + Send + Sync + 'static {
    move |text| UpstreamDraft::default().set(key, text).map(|()| text.to_owned())
}

/// The text of `relent help upstream`.
pub(crate) fn help() -> String {
    topic::help::<UpstreamArgs>(
        "upstream",
        "The flags that protect the far side, the same in relent run, http, connect and explain.",
        ABOUT,
    )
}

const ABOUT: &str = "\
A value is KEY=VALUE,KEY=VALUE or a name; none takes away what the file says. A flag takes the place
of the file's whole part. The first key of each line names the kind:

  --budget   ratio=0.1,min_per_second=1,window=10s      a retry for every tenth call
             aws_quota=500,cost=14,throttling_cost=5,timeout_cost=14
             grpc=10,token_ratio=0.1                    finagle=0.2,min_per_second=10,ttl=10s
             in_flight=0.2,floor=3,sleeping=true        throttle=2,window=2m,at_most=1
             aws-2.0 aws-2.1 envoy failsafe-go finagle grpc-a6 linkerd sre sre-retries tower
  --breaker  consecutive=5 failures=10 share=0.5 slow_after=2s: what trips it, any of them
             window=10s or window_calls=100, min_calls=20, slow_share=0.5
             open_for=30s,factor=2,open_at_most=5m,jitter=0.2
             probes=1,close_after=1,reopen_share=0.5,probe_again_after=30s,ramp=10s,ramp_from=0.1
             cockatiel gobreaker polly resilience4j
  --limit    rate=100,per=1s,burst=10                   concurrency=20,queue=10,longest=100ms
             aimd=20,min=1,max=1000,slow_after=1s       gradient=20,max=1000      aws_adaptive
  --hedge    after=50ms  quantile=0.95  at_most=1,min_samples=100

In a policy file, which policies name by upstream = \"bank\":

  [upstream.bank]
  budget = { ratio = 0.1, min_per_second = 1 }
  breaker = { consecutive = 5, open_for = \"30s\" }

A hedge is for relent http, and there for what may run twice at once: GET, HEAD, OPTIONS, and
requests with an --idempotency-key.

One relent run is one process, and shares none of it with others: its budget bounds its own retries.
With store = \"sqlite:FILE\" beside it, which relent store migrate makes, or --upstream NAME
--store URL, all processes share budget, breaker and rate, as long as the store answers each of
them in time: hundreds that begin in one moment are for Redis or Postgres.
relent upstream shows what they know, relent explain what an upstream allows.
";
