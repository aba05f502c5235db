//! The helps that are about some flags of several commands, and not about a command: `relent help policy`.

/// The text of one: what the flags are, all of them, and what else there is to know.
pub(crate) fn help<Flags: clap::Args>(name: &'static str, about: &'static str, rest: &'static str) -> String {
    let table = Flags::augment_args(clap::Command::new(name));
    let mut shown = table
        .mut_args(|arg| arg.hide(false).help_heading("Flags"))
        .disable_help_flag(true)
        .about(about)
        .help_template("{about}\n\n{options}{after-help}")
        .after_help(rest);
    shown.render_help().to_string().trim_end().to_owned() + "\n"
}
