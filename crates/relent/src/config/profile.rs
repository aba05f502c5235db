//! Where `compat = "NAME"` joins the profiles of other systems.

use super::draft::BadSetting;
use crate::Settings;

/// The settings of a profile.
pub(super) fn settings(name: &str) -> Result<Settings, BadSetting> {
    Err(BadSetting::unknown("profile", name, &[]).at("compat"))
}
