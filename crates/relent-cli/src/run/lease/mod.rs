//! A lease around a run: taken before the first attempt, renewed while attempts and waits last, let go at the end.
//!
//! Three take part: this thread, which runs the command and ends it in time; the [`keeper`], a thread that asks the store;
//! the [`watchman`], a process that ends the command if relent itself is stopped or killed. Nothing of it is started, and no
//! store is opened, unless a lease is asked for.

mod args;
mod asking;
mod duty;
mod keeper;
mod search;
mod times;
mod waiting;
pub(crate) mod watchman;

pub(super) use args::LeaseArgs;
pub(crate) use args::help;
pub(super) use asking::Terms;

use super::{group::Group, narrator::Narrator, orphans, processes, report::Outcome, signals::Signals};
use crate::{
    ear::Ear,
    store::{self, counted, place},
    talk::{Fault, plain},
};
use asking::{Asking, found};
use duty::LATE;
use keeper::{Keeper, LET_GO, News, Order, Wish};
use nix::unistd::Pid;
use relent::duration::Human;
use relent_store::{Kept, Key};
use std::{
    cell::{Cell, RefCell},
    ffi::OsString,
    time::{Duration, Instant},
};
use times::{Moment, Times};
use waiting::Delays;
use watchman::{Line, Watchman};

/// A lease that was taken.
pub(super) struct Leased {
    name: Key,
    url: String,
    times: Times,
    at_least: Option<Duration>,
    fence: u64,
    taken: Moment,
    keeper: Keeper,
    watchman: Option<Watchman>,
    /// When the call's time is over.
    deadline: Option<Instant>,
    state: RefCell<State>,
    /// Whether it was let go, as far as there was time.
    is_let_go: bool,
    /// Whether the end of the lease was said.
    is_said: Cell<bool>,
    /// A command is there, or may be.
    is_under_way: Cell<bool>,
    /// Whether any command was started: only then it is to be held for longer than that takes.
    was_used: Cell<bool>,
    /// Those of commands that are over that nobody could end, and groups of which nobody is shown.
    left: RefCell<Vec<Pid>>,
    /// Whether the watchman was told something that it did not hear, and whether that was said.
    is_deaf: Cell<bool>,
    is_deaf_said: Cell<bool>,
    ear: Ear,
}

/// What is known of it.
struct State {
    /// When its last renewal was asked for.
    asked: Moment,
    is_lost: bool,
    /// Whether it was renewed so late that the watchman may have told the command to end.
    is_late: bool,
    /// Whether the store says so.
    is_fenced: bool,
    /// Why it cannot be renewed, if it cannot.
    trouble: Option<String>,
    ended: Option<Result<Kept, relent_store::Error>>,
    is_closed: bool,
}

/// What became of the wish.
pub(super) enum Taken {
    Leased(Box<Leased>),
    Not(Outcome),
}

impl Leased {
    /// Takes the lease, if one is wanted.
    pub(super) fn take(terms: &Terms<'_>, signals: &Signals, narrator: &Narrator) -> Result<Option<Taken>, Fault> {
        let Some(name) = terms.args.name.clone() else { return Ok(None) };
        let url = match found(terms, signals, narrator)? {
            Ok(found) => found,
            Err(outcome) => return Ok(Some(Taken::Not(outcome))),
        };
        let times = Times { ttl: terms.args.ttl(), grace: terms.grace };
        let delays = Delays::new(terms.policy, times.ttl, terms.seed);
        let wish = Wish { url: url.clone(), name: name.clone(), times, held: terms.args.held(), delays };
        let no_thread = |error| Fault::new(format!("cannot keep a lease: {}", plain(&error)));
        let keeper = Keeper::start(wish, signals.waker().map_err(no_thread)?).map_err(no_thread)?;
        let asking = Asking { name: &name, url: &url, keeper: &keeper, narrator };
        let (fence, asked) = match asking.run(terms, signals)? {
            Ok(taken) => taken,
            Err(outcome) => return Ok(Some(Taken::Not(outcome))),
        };
        let begun = terms.starting.begins(None, &orphans::all().unwrap_or_default());
        let watchman = Watchman::start(terms.signal, terms.mark, narrator.is_json());
        drop(begun);
        let watched = watchman.and_then(|mut watchman| {
            // At once: the command may be there before the keeper comes to that, and relent stopped.
            watchman.line.holds(asked.plus(times.tell()), asked.plus(times.kill()));
            match watchman.comes_up(signals, terms.deadline).and_then(|()| watchman.line.try_clone()) {
                Ok(line) => Ok((watchman, line)),
                Err(error) => {
                    watchman.dismiss();
                    Err(error)
                }
            }
        });
        let watchman = match watched {
            Ok((watchman, line)) => {
                keeper.order(Order::Tell(line));
                Some(watchman)
            }
            Err(error) => {
                narrator.remark(format_args!(
                    "nobody watches over the lease: if relent is killed, the command goes on ({})",
                    plain(&error)
                ));
                None
            }
        };
        narrator.lease("held", &asking.is_held(fence), &|event| {
            event.text("lease", &counted::told(&name, name.as_bytes())).number("fence", fence);
        });
        let state = State {
            asked,
            is_lost: false,
            is_late: false,
            is_fenced: false,
            trouble: None,
            ended: None,
            is_closed: false,
        };
        Ok(Some(Taken::Leased(Box::new(Leased {
            name,
            url,
            times,
            at_least: terms.args.at_least,
            fence,
            taken: asked,
            keeper,
            watchman,
            deadline: terms.deadline,
            state: RefCell::new(state),
            is_let_go: false,
            is_said: Cell::new(false),
            is_under_way: Cell::new(false),
            was_used: Cell::new(false),
            left: RefCell::default(),
            is_deaf: Cell::new(false),
            is_deaf_said: Cell::new(false),
            ear: signals.ear(),
        }))))
    }

    /// The number that is greater for each holder than for all before.
    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    /// What the command is told.
    pub(super) fn environment(&self) -> (&'static str, OsString) {
        ("RELENT_FENCE", self.fence.to_string().into())
    }

    /// From when on the command has to be told to end, as far as is known now.
    pub(super) fn tell_at(&self) -> Instant {
        self.tells().instant()
    }

    fn tells(&self) -> Moment {
        self.look();
        let state = self.state.borrow();
        if state.is_lost { state.asked } else { state.asked.plus(self.times.tell()) }
    }

    /// From when on it has to be gone.
    pub(super) fn kill_at(&self) -> Instant {
        self.look();
        self.state.borrow().asked.plus(self.times.kill()).instant()
    }

    /// Whether the command has to end, or cannot be started any more.
    pub(super) fn is_lost(&self) -> bool {
        if self.tells() > Moment::now() {
            return false;
        }
        self.state.borrow_mut().is_lost = true;
        true
    }

    /// Whether the watchman may have told the command to end, as it does where relent itself was stopped for so long. Then it is lost.
    pub(super) fn may_have_ended_it(&self) -> bool {
        self.look();
        let mut state = self.state.borrow_mut();
        let is_so = state.is_late || self.watchman_tells(state.asked) <= Moment::now();
        state.is_lost |= is_so;
        is_so
    }

    fn watchman_tells(&self, asked: Moment) -> Moment {
        asked.plus(self.times.tell()).plus(LATE)
    }

    /// Says, once, that it is lost and why.
    pub(super) fn say_lost(&self, say: &dyn Fn(&str)) {
        if !self.is_said.replace(true) {
            let name = &self.name;
            let state = self.state.borrow();
            say(&match &state.trouble {
                _ if state.is_fenced => format!("the lease {name} has ended, or somebody else has it"),
                Some(trouble) => format!("the lease {name} cannot be renewed: {trouble}"),
                None => format!("the lease {name} was not renewed in time: relent was stopped, or this machine slept"),
            });
        }
    }

    /// A command is about to start.
    pub(super) fn starts(&self, say: &dyn Fn(&str)) {
        self.is_under_way.set(true);
        self.look();
        // Whoever was told then is none of this one.
        self.state.borrow_mut().is_late = false;
        self.tell(Line::starts);
        self.say_unwatched(say);
    }

    /// Says, once, that the watchman is gone, as soon as that is known.
    pub(super) fn say_unwatched(&self, say: &dyn Fn(&str)) {
        self.look();
        if self.is_deaf.get() && !self.is_deaf_said.replace(true) {
            say("nobody watches over the lease any more: if relent is killed, the command goes on");
        }
    }

    /// The command runs in this group, or none does.
    pub(super) fn group(&self, group: Option<Pid>) {
        self.is_under_way.set(group.is_some());
        self.was_used.set(self.was_used.get() || group.is_some());
        self.tell(|line| line.group(group));
    }

    /// The command is over, as far as it could be ended.
    pub(super) fn is_over(&self, group: &Group) {
        self.left.borrow_mut().extend(group.who_goes_on());
        self.group(None);
    }

    /// Whether anything of the command is known to go on: nobody else is to have the lease as long as it holds.
    fn goes_on(&self) -> bool {
        self.is_under_way.get() || !self.left.borrow().iter().all(|pid| processes::is_over(*pid))
    }

    /// How long it is to be kept when the run is over, if it is.
    fn keeps(&self) -> Option<Duration> {
        let least = self.at_least.filter(|_| self.was_used.get());
        let left = least.map(|least| least.saturating_sub(Moment::now().after(self.taken)));
        let going = self.goes_on().then_some(self.times.ttl);
        left.into_iter().chain(going).max().filter(|left| !left.is_zero())
    }

    /// The run has failed: what becomes of the lease, if it is not let go.
    pub(super) fn fails(&self, narrator: &Narrator) {
        if self.goes_on() {
            let (name, most) = (&self.name, Human(self.at_least.unwrap_or_default().max(self.times.ttl)));
            narrator.remark(format_args!(
                "the lease {name} is not released, since something of the command goes on; it ends by itself within {most}"
            ));
        }
    }

    /// The command was told to end.
    pub(super) fn told(&self) {
        self.tell(Line::told);
    }

    fn tell(&self, what: impl FnOnce(&Line) -> bool) {
        if self.watchman.as_ref().is_some_and(|watchman| !what(&watchman.line)) {
            self.is_deaf.set(true);
        }
    }

    /// The process that watches, if there is one. It is nobody's orphan.
    pub(super) fn watchman(&self) -> Option<Pid> {
        self.watchman.as_ref().map(Watchman::pid)
    }

    /// Takes note of what the keeper has told.
    fn look(&self) {
        let mut state = self.state.borrow_mut();
        for news in self.keeper.news.try_iter() {
            match news {
                News::Unheard => self.is_deaf.set(true),
                News::Renewed(asked) => {
                    state.is_late |= self.watchman_tells(state.asked) <= asked;
                    (state.asked, state.trouble) = (asked, None);
                }
                News::Away(error) => state.trouble = Some(error.to_string()),
                News::Lost => (state.is_lost, state.is_fenced) = (true, true),
                News::Ended(ended) => state.ended = Some(ended),
                News::Closed => state.is_closed = true,
                _ => {}
            }
        }
    }

    /// Lets it go, unless it is to be kept for longer or something of the command goes on, and says so if that fails. The store is closed
    /// then, unless that takes too long, which it soon does if the run `is_interrupted`.
    pub(super) fn end(mut self, is_interrupted: bool, signals: &Signals, narrator: &Narrator) {
        let keep = self.keeps();
        self.fails(narrator);
        self.is_let_go = true;
        self.keeper.order(Order::End(keep));
        // Nothing is left to be ended, however long the store takes.
        if !self.goes_on()
            && let Some(watchman) = self.watchman.take()
        {
            watchman.dismiss();
        }
        let soon = || store::latest(LET_GO, Some(Instant::now()));
        let mut latest = match is_interrupted {
            true => soon(),
            false => store::latest(LET_GO + Duration::from_secs(1), self.deadline),
        };
        while !self.state.borrow().is_closed && !self.keeper.is_over() && Instant::now() < latest {
            let most = latest.saturating_duration_since(Instant::now()).min(Duration::from_millis(100));
            if signals.wait(most).is_some() {
                latest = soon().min(latest);
            }
            self.look();
        }
        self.look();
        if let Some(watchman) = self.watchman.take() {
            watchman.dismiss();
        }
        let name = &self.name;
        let state = self.state.borrow();
        match (&state.ended, keep) {
            (Some(Ok(Kept::Kept)), Some(keep)) => {
                narrator.lease("kept", &format!("lease {name}: kept for another {:.1}", Human(keep)), &|event| {
                    event.text("lease", &counted::told(name, name.as_bytes())).number("fence", self.fence);
                });
            }
            (Some(Ok(Kept::Kept)), None) => narrator.lease("released", &format!("lease {name}: released"), &|event| {
                event.text("lease", &counted::told(name, name.as_bytes())).number("fence", self.fence);
            }),
            _ if state.is_lost => {}
            (Some(Ok(Kept::Fenced)), _) => {
                narrator.remark(format_args!("the lease {name} had ended before it was released"));
            }
            (other, _) => {
                let why = match other {
                    Some(Err(error)) => error.to_string(),
                    _ => "the store does not answer".to_owned(),
                };
                let ttl = Human(self.times.ttl);
                let url = place::shown(&self.url);
                narrator.remark(format_args!(
                    "the lease {name} was not released, and ends by itself within {ttl}: store {url}: {why}"
                ));
            }
        }
    }
}

/// A run that failed lets go, too, when what it had started was ended, unless it is to be kept for longer. Where something of it goes on,
/// as after a panic, the lease holds for its time, and the watchman ends what it can, who sees that nobody is there any more.
impl Drop for Leased {
    fn drop(&mut self) {
        if !self.is_let_go {
            if self.goes_on() {
                self.tell(Line::leaves);
            }
            self.keeper.leave(self.keeps(), self.deadline, &self.ear);
        }
        if let Some(watchman) = self.watchman.take().filter(|_| !self.is_let_go && !self.is_under_way.get()) {
            watchman.dismiss();
        }
    }
}
