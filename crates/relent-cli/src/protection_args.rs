//! The flags of what protects the far side where many clients are shown at once: the machines of an upstream at the
//! clients, admission and pacer at the server. The same in `relent simulate` and `relent storm`.
//!
//! Whoever is protected stands beside the same policy without protection.

use crate::{
    policy_args::PolicyArgs,
    talk::Fault,
    upstream_args::{UpstreamArgs, part},
};
use clap::Args;
use relent::config::{BadSetting, ServerDraft};
use relent_sim::{Contender, Protection};

/// The flags of protection: flatten them into a subcommand's flags.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Protection (a policy is shown without and with it)")]
pub(crate) struct ProtectionArgs {
    /// At the server: each refused client gets its own time to come
    /// back, at the server's capacity; or capacity=5000,horizon=60s
    #[arg(long, verbatim_doc_comment, value_name = "PACER", num_args = 0..=1, default_missing_value = "")]
    pacer: Option<String>,

    /// At the server: what is not worth the work is refused;
    /// max_retry_share=0.5,pushback=1s
    #[arg(long, verbatim_doc_comment, value_name = "ADMISSION", num_args = 0..=1, default_missing_value = "")]
    admission: Option<String>,

    /// At the clients: how many retries: ratio=0.1, or aws-2.1, sre.
    #[arg(long, value_name = "BUDGET", value_parser = part("budget"))]
    budget: Option<String>,

    /// At the clients: when to stop trying: consecutive=5,open_for=30s.
    #[arg(long, value_name = "BREAKER", value_parser = part("breaker"))]
    breaker: Option<String>,

    /// At the clients: how much at most: rate=100, or concurrency=20.
    // Not `--limit`, which is how long is simulated or watched.
    #[arg(long, value_name = "LIMIT", value_parser = part("limit"))]
    limiter: Option<String>,

    /// How many processes the clients are in; each has one budget,
    /// breaker and limit [default: a herd's clients have one each]
    #[arg(long, verbatim_doc_comment, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) processes: Option<u64>,
}

impl ProtectionArgs {
    /// What the flags say, and the upstream that the policy's file names if one was given.
    ///
    /// # Errors
    ///
    /// A value is none for its flag, or the file cannot be read.
    pub(crate) fn protection(&self, policy: &PolicyArgs, capacity: f64) -> Result<Protection, Fault> {
        let flags = UpstreamArgs {
            budget: self.budget.clone(),
            breaker: self.breaker.clone(),
            limit: self.limiter.clone(),
            ..UpstreamArgs::default()
        };
        let draft = match policy.policy.is_some() {
            true => flags.draft(policy)?.map(|described| described.draft).unwrap_or_default(),
            false => flags.flags()?,
        };
        let (upstream, server) = (draft.settings(), self.server(capacity)?);
        Ok(Protection {
            pacer: server.pacer.into_option(),
            admission: server.admission.into_option(),
            budget: upstream.budget,
            breaker: upstream.breaker,
            limit: upstream.limit,
            hedge: upstream.hedge,
            ..Protection::default()
        })
    }

    fn server(&self, capacity: f64) -> Result<ServerDraft, Fault> {
        let mut draft = ServerDraft::default();
        let pacer = self.pacer.as_deref().map(|text| match text {
            "" => format!("capacity={capacity}"),
            text if text == "none" || text.split(',').any(|pair| pair.starts_with("capacity")) => text.to_owned(),
            text => format!("capacity={capacity},{text}"),
        });
        // Without a word about it, it is what it is by default.
        let admission =
            self.admission.as_deref().map(|text| if text.is_empty() { "max_retry_share=0.5" } else { text });
        for (key, value) in [("pacer", pacer.as_deref()), ("admission", admission)] {
            let set = |value: &str| draft.set(key, value);
            value
                .map_or(Ok(()), set)
                .map_err(|bad: BadSetting| Fault::new(format!("--{key}: {}", bad.problem)).hint(bad.hint))?;
        }
        Ok(draft)
    }

    /// Whether any flag speaks of a machine at the server.
    pub(crate) fn speaks_of_server(&self) -> bool {
        self.pacer.is_some() || self.admission.is_some()
    }
}

/// Each policy as it is, and protected beside it, if there is anything that protects.
pub(crate) fn without_and_with(contenders: Vec<Contender>, protection: &Protection) -> Vec<Contender> {
    if !protection.is_any() {
        return contenders;
    }
    let both = |contender: Contender| [contender.clone(), protected(contender, protection)];
    contenders.into_iter().flat_map(both).collect()
}

/// The policy under the protection. Who gets a turn waits for it, unless it is said for how long to wait at most.
pub(crate) fn protected(mut contender: Contender, protection: &Protection) -> Contender {
    let usual = relent::Policy::default().settings().max_pushback;
    if let Some(pacer) = protection.pacer.filter(|_| contender.policy.settings().max_pushback == usual) {
        contender.policy = contender.policy.max_pushback(pacer.horizon);
    }
    contender.name = format!("{} + {}", contender.name, parts(protection));
    let server = Protection { pacer: None, admission: None, whole_seconds: false, ..*protection };
    for population in &mut contender.populations {
        population.protection = server;
        if let Some(pacer) = protection.pacer.filter(|_| population.policy.settings().max_pushback == usual) {
            population.policy = population.policy.max_pushback(pacer.horizon);
        }
    }
    contender.protected(*protection)
}

fn parts(protection: &Protection) -> String {
    let parts = [
        (protection.pacer.is_some(), "pacer"),
        (protection.admission.is_some(), "admission"),
        (protection.budget.is_some(), "budget"),
        (protection.breaker.is_some(), "breaker"),
        (protection.limit.is_some(), "limit"),
        (protection.hedge.is_some(), "hedge"),
    ];
    let said: Vec<&str> = parts.into_iter().filter_map(|(is_there, name)| is_there.then_some(name)).collect();
    said.join(", ")
}
