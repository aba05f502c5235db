//! A terminal that is lent to the command, and what others make of it meanwhile.

use super::{Place, is_running, terminal::in_a_shell, until};
use std::{fs, time::Duration};

/// The system tells it to the group that has the terminal, which is the command's: nobody tries again without one.
#[test]
fn a_terminal_that_is_closed_ends_the_run_and_the_script_around_it() {
    for end in ["exec sleep 30", "trap 'exit 1' HUP; while :; do sleep 0.02; done"] {
        for script in ["relent run -q --base 1ms -- sh cmd.sh", "sh -c 'relent run -q -- sh cmd.sh; : > after'"] {
            let place = Place::new();
            let command = format!("echo x >> runs; echo $PPID > relent; : > up; {end}");
            fs::write(place.0.path().join("cmd.sh"), command).unwrap();
            let (mut terminal, _stdin) = in_a_shell(&place, &format!("{script}; : > after"));
            until("it runs", || place.has("up"));
            std::thread::sleep(Duration::from_millis(50));
            terminal.kill().unwrap();
            terminal.wait().unwrap();
            let relent = place.0.read("relent");
            until("relent has ended", || !is_running(&relent));
            assert_eq!((place.0.read("runs").as_str(), place.has("after")), ("x\n", false), "{script}: {end}");
        }
    }
}
