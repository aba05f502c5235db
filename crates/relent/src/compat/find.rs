//! Profiles by their names.

use super::{Profile, profiles::PROFILES};
use crate::suggest::distance;
use std::{error::Error, fmt, string::String};

/// All profiles. COMPARE.md compares them.
///
/// ```
/// assert!(relent::compat::all().iter().any(|profile| profile.name == "celery"));
/// ```
pub fn all() -> &'static [Profile] {
    &PROFILES
}

/// The profile of this name. Case does not matter, and `_` is `-`.
///
/// # Errors
///
/// [`Unknown`] says which name was perhaps meant.
///
/// ```
/// let unknown = relent::compat::find("cenkalti-v44").unwrap_err();
/// assert_eq!(unknown.nearest(), Some("cenkalti-v4"));
/// ```
pub fn find(name: &str) -> Result<&'static Profile, Unknown> {
    let wanted = normal(name);
    PROFILES.iter().find(|profile| profile.name == wanted).ok_or_else(|| Unknown { name: name.into() })
}

/// No profile has this name.
///
/// ```
/// use relent::compat;
///
/// let unknown = compat::find("cellery").unwrap_err();
/// assert_eq!((unknown.name(), unknown.nearest()), ("cellery", Some("celery")));
/// assert_eq!(unknown.hint(), "did you mean celery?");
/// assert_eq!(unknown.to_string(), "no compat profile is called \"cellery\"");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    name: String,
}

impl Unknown {
    /// The name that was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The profile whose name is most like it, if one is.
    pub fn nearest(&self) -> Option<&'static str> {
        let wanted = normal(&self.name);
        let names = PROFILES.iter().map(|profile| profile.name);
        // At most a third of the letters may be wrong; a part of a name will do as well.
        let close = names
            .clone()
            .map(|name| (distance(&wanted, name), name))
            .filter(|(distance, name)| *distance * 3 <= name.len().max(wanted.len()))
            .min_by_key(|(distance, _)| *distance);
        let part = |name: &&str| wanted.len() >= 3 && (name.contains(&wanted) || wanted.contains(name));
        close.map(|(_, name)| name).or_else(|| names.clone().find(part))
    }

    /// What to write instead.
    pub fn hint(&self) -> String {
        match self.nearest() {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => "relent explain --profiles lists them; so do relent::compat::all() and COMPARE.md".into(),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no compat profile is called {:?}", self.name)
    }
}

impl Error for Unknown {}

fn normal(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace(['_', ' '], "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Curve, compat::Evidence};
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_those_of_their_rules() {
        let mut seen = BTreeSet::new();
        for profile in all() {
            assert!(seen.insert(profile.name), "{} twice", profile.name);
            assert_eq!(profile.name, normal(profile.name));
            if let Curve::Custom(rule) = profile.policy().settings().curve {
                assert_eq!(rule.name(), profile.name);
            }
            for text in [profile.system, profile.version, profile.source, profile.warning] {
                assert!(!text.is_empty() && !text.contains('\n'), "{}", profile.name);
            }
        }
    }

    /// COMPARE.md has a row for every profile, with what proves it and what it picks.
    #[test]
    fn every_profile_is_compared() {
        let page = include_str!("../../COMPARE.md");
        let rows = || page.lines().filter(|line| line.starts_with("| `"));
        for profile in all() {
            let name = format!("`{}`", profile.name);
            let has = |cell: &str| rows().any(|row| row.contains(&name) && row.contains(cell));
            assert!(has(&format!(" | {} | ", profile.evidence.as_str())), "{} and its evidence", profile.name);
            assert!(profile.picks.is_empty() || has(&format!(" | {} |", profile.picks)), "{} picks", profile.name);
        }
    }

    /// A profile that is compared with nothing says so, and no other.
    #[test]
    fn what_is_only_published_has_no_numbers() {
        let published: Vec<_> = all().iter().filter(|p| p.evidence == Evidence::Published).map(|p| p.name).collect();
        assert_eq!(published, ["apue", "browser-reconnect", "wechat-pay", "alipay", "svix", "standard-webhooks"]);
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for name in ["cenkalti-v4", "Cenkalti_V4", " CENKALTI v4 "] {
            assert_eq!(find(name).unwrap().name, "cenkalti-v4");
        }
    }

    #[test]
    fn a_wrong_name_has_a_hint() {
        let nearest = |name| find(name).unwrap_err().nearest();
        assert_eq!(nearest("tenacty-exponential"), Some("tenacity-exponential"));
        assert_eq!(nearest("aws-2.2"), Some("aws-2.0"));
        assert_eq!(nearest("wechat"), Some("wechat-pay"));
        assert_eq!(nearest("xyzzy"), None);
        let unknown = find("xyzzy").unwrap_err();
        assert_eq!(unknown.to_string(), "no compat profile is called \"xyzzy\"");
        assert!(unknown.hint().contains("COMPARE.md"));
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
