//! What scenario files say must hold: `[assert]`.

use super::{
    Assertion, Contender, Figure, Subject,
    table::{Result, Table},
};
use relent::config::BadSetting;
use toml::{Spanned, de::DeValue};

/// `[assert]` bounds figures for every policy, `[assert.NAME]` for one.
pub(super) fn asserts(root: &Table<'_>, contenders: &[Contender]) -> Result<Vec<Assertion>> {
    let Some(table) = root.table("assert")? else { return Ok(Vec::new()) };
    let mut asserts = Vec::new();
    for (name, value, span) in table.entries() {
        if let Some(subject) = Subject::parse(name) {
            asserts.push(bound(&table, subject, value, None)?);
            continue;
        }
        if !contenders.iter().any(|contender| contender.has_record(name)) {
            let apart: Vec<String> =
                contenders.iter().flat_map(Contender::apart).map(|population| population.name).collect();
            let mut names: Vec<&str> = contenders.iter().map(|contender| contender.name.as_str()).collect();
            names.extend(apart.iter().map(String::as_str));
            names.extend(Figure::ALL.map(Figure::name));
            names.push("recovered");
            let bad = BadSetting::unknown("figure or policy", name, &names);
            return Err(table.wrong(span, bad.problem, bad.hint));
        }
        let own = table.table_of(name, value)?;
        for (figure, value, span) in own.entries() {
            let Some(subject) = Subject::parse(figure) else {
                let bad = BadSetting::unknown("figure", figure, &Figure::ALL.map(Figure::name));
                return Err(own.wrong(span, bad.problem, bad.hint));
            };
            asserts.push(bound(&own, subject, value, Some(name.to_owned()))?);
        }
    }
    Ok(asserts)
}

/// `{ max = 60 }`, `{ min = 1 }`, or `"<= 60"`.
fn bound<'a>(
    table: &Table<'a>,
    subject: Subject,
    value: &'a Spanned<DeValue<'a>>,
    policy: Option<String>,
) -> Result<Assertion> {
    const HINT: &str = "{ max = 60 }, { min = 1 } or \"<= 60\"";
    let (min, max) = match value.get_ref() {
        DeValue::String(text) => {
            let (most, number) = match (text.strip_prefix("<="), text.strip_prefix(">=")) {
                (Some(number), _) => (true, number),
                (_, Some(number)) => (false, number),
                _ => return Err(table.wrong(value.span(), format!("{text:?} is no bound"), HINT)),
            };
            match number.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => {
                    if most {
                        (None, Some(number))
                    } else {
                        (Some(number), None)
                    }
                }
                _ => return Err(table.wrong(value.span(), format!("{text:?} is no bound"), HINT)),
            }
        }
        DeValue::Table(_) => {
            let bounds = table.table_of("a bound", value)?;
            let read = (bounds.number("min")?, bounds.number("max")?);
            bounds.finish()?;
            read
        }
        _ => return Err(table.wrong(value.span(), "this is no bound", HINT)),
    };
    if min.is_none() && max.is_none() {
        return Err(table.wrong(value.span(), "the bound bounds nothing", HINT));
    }
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let problem = format!("no number is at least {min} and at most {max}");
        return Err(table.wrong(value.span(), problem, "{ min = 1, max = 2 }"));
    }
    Ok(Assertion { policy, subject, min, max })
}
