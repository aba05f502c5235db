//! One script an operation.

use redis::Cmd;

/// A script, and the hash by which the server knows it.
#[derive(Debug)]
pub(super) struct Script {
    code: &'static str,
    hash: String,
}

impl Script {
    fn new(code: &'static str) -> Script {
        Script { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }

    /// A command that runs it on keys; arguments follow.
    pub(super) fn on<const N: usize>(&self, keys: [&str; N]) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hash).arg(N).arg(&keys[..]);
        command
    }

    /// A command that runs it on so many keys; arguments follow.
    pub(super) fn on_all<'a>(&self, keys: impl ExactSizeIterator<Item = &'a str>) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hash).arg(keys.len());
        for key in keys {
            command.arg(key);
        }
        command
    }

    /// A command that tells it to a server that does not know it.
    pub(super) fn told(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.code);
        command
    }
}

/// A script of these files, one after the other.
macro_rules! script {
    ($($file:literal)+) => {
        Script::new(concat!($(include_str!($file), "\n"),+))
    };
}

/// A script that does for each of many keys what these files do for one, all at the same time.
macro_rules! script_of_many {
    ($($file:literal)+) => {
        Script::new(concat!(
            include_str!("lua/clock.lua"), "local function one(KEYS, ARGV)\n", $(include_str!($file), "\n",)+ "end\n",
            include_str!("lua/each.lua"),
        ))
    };
}

macro_rules! scripts {
    ($($name:ident: $script:expr,)*) => {
        /// Every script, put together.
        #[derive(Debug)]
        pub(super) struct Scripts {
            $(pub(super) $name: Script,)*
        }

        impl Scripts {
            pub(super) fn new() -> Scripts {
                Scripts { $($name: $script,)* }
            }
        }
    };
}

scripts! {
    begin: script!("lua/clock.lua" "lua/begin_anew.lua" "lua/packed.lua" "lua/begin.lua"),
    begin_many: script_of_many!("lua/begin_anew.lua" "lua/packed.lua" "lua/begin.lua"),
    complete: script!("lua/complete.lua"),
    complete_many: script_of_many!("lua/complete.lua"),
    abandon: script!("lua/packed.lua" "lua/abandon.lua"),
    extend: script!("lua/packed.lua" "lua/extend.lua"),
    acquire: script!("lua/clock.lua" "lua/acquire_anew.lua" "lua/packed.lua" "lua/acquire.lua"),
    acquire_many: script_of_many!("lua/acquire_anew.lua" "lua/packed.lua" "lua/acquire.lua"),
    renew: script!("lua/packed.lua" "lua/renew.lua"),
    release: script!("lua/release.lua"),
    release_many: script_of_many!("lua/release.lua"),
    holder: script!("lua/packed.lua" "lua/holder.lua"),
    outline: script!("lua/outline.lua"),
    replace: script!("lua/prelude.lua" "lua/replace.lua"),
    first_time: script!("lua/prelude.lua" "lua/first_time.lua"),
    merge: script!("lua/prelude.lua" "lua/merge.lua"),
    hold: script!("lua/hold.lua"),
}
