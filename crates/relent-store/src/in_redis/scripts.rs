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

    /// A command that tells it to a server that does not know it.
    pub(super) fn told(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.code);
        command
    }
}

macro_rules! scripts {
    ($($name:ident: $($file:literal)+,)*) => {
        /// Every script, put together.
        #[derive(Debug)]
        pub(super) struct Scripts {
            $(pub(super) $name: Script,)*
        }

        impl Scripts {
            pub(super) fn new() -> Scripts {
                Scripts { $($name: Script::new(concat!($(include_str!($file), "\n"),+)),)* }
            }
        }
    };
}

scripts! {
    begin: "lua/begin_anew.lua" "lua/packed.lua" "lua/begin.lua",
    complete: "lua/complete.lua",
    abandon: "lua/packed.lua" "lua/abandon.lua",
    extend: "lua/packed.lua" "lua/extend.lua",
    acquire: "lua/acquire_anew.lua" "lua/packed.lua" "lua/acquire.lua",
    renew: "lua/packed.lua" "lua/renew.lua",
    release: "lua/release.lua",
    holder: "lua/packed.lua" "lua/holder.lua",
    outline: "lua/outline.lua",
    replace: "lua/prelude.lua" "lua/replace.lua",
    first_time: "lua/prelude.lua" "lua/first_time.lua",
    merge: "lua/prelude.lua" "lua/merge.lua",
    hold: "lua/hold.lua",
}
