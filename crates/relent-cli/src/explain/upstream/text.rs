//! An upstream explained to people.

use super::{OnUpstream, allowed, figure, opened, plot};
use crate::{
    breaks::{wrap, wrap_named},
    escape::escape,
    plot::terminal,
    redact,
};
use relent::{BudgetSettings, HedgeSettings, LimitSettings, UpstreamSettings, config::Part, duration::Human};
use std::{fmt::Write, time::Duration};

/// The explanation of one upstream, after that of the policy.
pub(in crate::explain) fn explain(on: &OnUpstream, width: usize, has_plot: bool) -> String {
    let mut out = "\n".to_owned();
    out.push_str(&wrap_named(&format!("On {}:", escape(&redact::text(&on.described.name))), width));
    out.push_str(&settings(on));
    let mut said = Vec::new();
    said.extend(on.settings.budget.map(|budget| budget_said(on, &budget)));
    said.extend(on.settings.breaker.map(|_| breaker_said(on)));
    said.extend(on.settings.limit.as_ref().map(limit_said));
    said.extend(on.settings.hedge.as_ref().map(hedge_said));
    said.extend(layers_said(on));
    for paragraph in said {
        out.push('\n');
        out.push_str(&wrap(&(paragraph + "\n"), width));
    }
    if has_plot && let Some(chart) = plot::chart(on) {
        let first = chart.series.first().map_or("", |series| series.name.as_str());
        let lines = match chart.series.get(1) {
            Some(second) => format!("{}: {} above, {} below.", chart.y_name, escape(first), escape(&second.name)),
            None => format!("{}.", chart.y_name),
        };
        out.push('\n');
        out.push_str(&wrap_named(&lines, width));
        out.push_str(&terminal::draw(&chart, width.min(crate::explain::text::MOST_WIDTH), 2));
        let _ = writeln!(out, "{:>1$}", chart.x_name, chart.x_name.len() + 5);
    }
    for warning in on.warnings() {
        out.push('\n');
        out.push_str(&wrap(&format!("warning: {warning}\nhint: {}\n", warning.hint()), width));
    }
    out
}

/// What each part says, and where that came from.
fn settings(on: &OnUpstream) -> String {
    let flags = on.described.flags;
    let said = [
        (flags.budget != Part::Unsaid, "budget"),
        (flags.breaker != Part::Unsaid, "breaker"),
        (flags.limit != Part::Unsaid, "limit"),
        (flags.hedge != Part::Unsaid, "hedge"),
    ];
    let origin = on.described.origin.as_deref().unwrap_or("default");
    let text = on.described.draft.to_string();
    let mut out = String::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once(" = ")) {
        let is_flag = said.contains(&(true, key));
        let from = if is_flag { format!("--{key}") } else { escape(&redact::text(origin)).into_owned() };
        let value = value.trim_start_matches("{ ").trim_end_matches(" }").replace(" = ", "=").replace('"', "");
        let _ = writeln!(out, "  {key:7}  {from}: {value}");
    }
    if text.is_empty() {
        out.push_str("  nothing protects it\n");
    }
    out
}

const ENDLESS: &str = "attempts without end";

fn budget_said(on: &OnUpstream, budget: &BudgetSettings) -> String {
    let load = figure(on.load);
    let alone = UpstreamSettings::default().amplification(&on.policy);
    let alone = alone.map_or(ENDLESS.to_owned(), figure);
    let instead_of = |attempts: Option<f64>| match attempts {
        Some(attempts) => format!("{} attempts on average instead of {alone}", figure(attempts)),
        None => ENDLESS.to_owned(),
    };
    let at_once = allowed::at_once(budget).unwrap_or(0);
    match *budget {
        BudgetSettings::Ratio { .. } | BudgetSettings::Finagle { .. } => {
            let retries = allowed::retries_a_second(budget, on.load).unwrap_or(0.0);
            let attempts = allowed::attempts(&on.settings, allowed::most(&on.policy), on.load, 1.0);
            format!(
                "At {load} calls a second the budget allows {} retries a second. When every attempt fails, a call makes {}. \
                 Up to {at_once} retries may come at once without any call.",
                figure(retries),
                instead_of(attempts)
            )
        }
        BudgetSettings::AwsQuota(costs) => format!(
            "A far side that is down gets {at_once} retries in all ({} tokens, {} a retry), {} if it throttles; then none \
             before calls succeed. A call makes 1 attempt then instead of {alone}.",
            costs.capacity,
            costs.cost,
            costs.capacity / costs.throttling_cost.max(1)
        ),
        BudgetSettings::Grpc { max_tokens, token_ratio } => format!(
            "Retries stop at failure {} in a row and go on when more than {} of {max_tokens} tokens are left: each failure \
             takes 1, each success gives {token_ratio}. When more than {} % of the attempts fail for long, a call makes 1 \
             attempt instead of {alone}.",
            at_once + 1,
            figure(f64::from(max_tokens) / 2.0),
            figure(100.0 * token_ratio / (1.0 + token_ratio))
        ),
        BudgetSettings::InFlight { share, floor, .. } => format!(
            "Of the attempts in flight {} % may be retries, {floor} in any case. When every attempt fails, a call makes {}.",
            figure(share * 100.0),
            instead_of(on.settings.amplification(&on.policy)),
        ),
        BudgetSettings::Throttle { k, window, at_most } => format!(
            "Attempts are refused, first ones too, as soon as more than {} times as many were made in {} as were accepted; at \
             most {} % of them.",
            figure(k),
            Human(window),
            figure(at_most * 100.0)
        ),
        BudgetSettings::Custom(rule) => format!("Retries are allowed by the rule of {}.", rule.name()),
    }
}

fn breaker_said(on: &OnUpstream) -> String {
    let Some(settings) = on.settings.breaker else { return String::new() };
    let mut out = format!("The breaker trips {}", opened::trips(&settings));
    if let Some(failures) = opened::failures(&settings) {
        let after = Duration::from_secs_f64((f64::from(failures) / on.load).min(1e9));
        let load = figure(on.load);
        let _ = write!(out, ": when all fail, within {} at {load} attempts a second", super::super::text::brief(after));
    }
    let range = |(least, most): &(Duration, Duration)| match least == most {
        true => super::super::text::brief(*least),
        false => format!("{} to {}", super::super::text::brief(*least), super::super::text::brief(*most)),
    };
    let times: Vec<String> = opened::times(&settings).iter().map(range).collect();
    let _ = write!(out, ". It is open for {}", times.join(", then "));
    match times.len() {
        1 => out.push_str(", each time"),
        _ => out.push_str(" as it trips again and again"),
    }
    let probes = match settings.probes {
        1 => "1 probe at a time finds out".to_owned(),
        count => format!("up to {count} probes at a time find out"),
    };
    let wanted = match settings.close_after {
        1 => "1 success closes it".to_owned(),
        count => format!("{count} successes close it"),
    };
    let _ = write!(out, ". Then {probes}, and {wanted}");
    if !settings.ramp.is_zero() {
        let first = figure(settings.ramp_from * 100.0);
        let _ = write!(out, "; attempts are let in over {}, from {first} % on", Human(settings.ramp));
    }
    out + "."
}

fn limit_said(limit: &LimitSettings) -> String {
    match *limit {
        LimitSettings::Rate { rate, per, burst } => {
            format!("At most {rate} attempts start in {}, {burst} of them at once; the others wait.", Human(per))
        }
        LimitSettings::Concurrency { limit, queue: 0, .. } => {
            format!("At most {limit} attempts are in flight; the others are shed.")
        }
        LimitSettings::Concurrency { limit, queue, longest } => format!(
            "At most {limit} attempts are in flight; {queue} more may wait for up to {}; the others are shed.",
            Human(longest)
        ),
        LimitSettings::Aimd { start, min, max, .. } => format!(
            "Attempts in flight are limited to {start} at first, and from {min} to {max} as they succeed or fail (AIMD)."
        ),
        LimitSettings::Gradient { start, max } => format!(
            "Attempts in flight are limited to {start} at first, and up to {max} as their latency allows (gradient)."
        ),
        LimitSettings::AwsAdaptive => "Attempts a second are limited once the far side throttles (CUBIC).".to_owned(),
    }
}

fn hedge_said(hedge: &HedgeSettings) -> String {
    let when = match (hedge.quantile, hedge.after) {
        (Some(quantile), Some(after)) => {
            format!(
                "{} % of the latencies, or {} before {} are known",
                figure(quantile * 100.0),
                Human(after),
                hedge.min_samples
            )
        }
        (Some(quantile), None) => {
            format!("{} % of the latencies, once {} are known", figure(quantile * 100.0), hedge.min_samples)
        }
        (None, Some(after)) => Human(after).to_string(),
        (None, None) => String::new(),
    };
    let hedges =
        if hedge.at_most == 1 { "a second attempt".to_owned() } else { format!("up to {} more", hedge.at_most) };
    format!("A call that is safe to run twice gets {hedges} after {when}, paid from the budget.")
}

fn layers_said(on: &OnUpstream) -> Option<String> {
    if on.layers < 2 {
        return None;
    }
    let layers = i32::from(on.layers);
    let product = |settings: &UpstreamSettings| match settings.amplification(&on.policy) {
        Some(attempts) => {
            let product = attempts.powi(layers);
            if product < 1000.0 { format!("{}", (product * 1000.0).round() / 1000.0) } else { figure(product) }
        }
        None => "endlessly many".to_owned(),
    };
    Some(format!(
        "Through {layers} layers like this one, a call of the first becomes {} attempts at the last when every attempt fails; \
         without what protects them {}.",
        product(&on.settings),
        product(&UpstreamSettings::default())
    ))
}
