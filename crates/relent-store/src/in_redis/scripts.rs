//! One script an operation.

use redis::Script;

macro_rules! scripts {
    ($($name:ident: $($file:literal)+,)*) => {
        /// Every script, with what comes before it.
        #[derive(Debug)]
        pub(super) struct Scripts {
            $(pub(super) $name: Script,)*
        }

        impl Scripts {
            pub(super) fn new() -> Scripts {
                Scripts { $($name: Script::new(concat!(include_str!("lua/prelude.lua"), $("\n", include_str!($file)),+)),)* }
            }
        }
    };
}

scripts! {
    begin: "lua/record.lua" "lua/begin.lua",
    complete: "lua/record.lua" "lua/complete.lua",
    abandon: "lua/record.lua" "lua/abandon.lua",
    extend: "lua/record.lua" "lua/extend.lua",
    acquire: "lua/acquire.lua",
    renew: "lua/renew.lua",
    release: "lua/release.lua",
    holder: "lua/holder.lua",
    replace: "lua/replace.lua",
    first_time: "lua/first_time.lua",
    merge: "lua/merge.lua",
    hold: "lua/hold.lua",
}
