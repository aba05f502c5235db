//! Where `compat = "NAME"` joins the profiles of other systems.

use super::bad_setting::BadSetting;
use crate::{Settings, compat};
use std::format;

/// The settings of a profile.
pub(super) fn settings(name: &str) -> Result<Settings, BadSetting> {
    match compat::find(name) {
        Ok(profile) => Ok(profile.policy().settings()),
        Err(unknown) => Err(BadSetting::new(format!("there is no profile {name:?}"), unknown.hint()).at("compat")),
    }
}
