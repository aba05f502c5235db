//! One attempt: the command started, fed, listened to, timed, and waited for.
//!
//! The attempt is over when the command is over, whoever else still holds its output open.

use super::{
    group::{Group, orphans},
    input::{Feed, Input, Wants, is_later, make_nonblocking},
    patterns::{Found, Patterns, Search},
    signals::{Signals, poll_timeout},
    spool::Spool,
    terminal::Lent,
};
use crate::talk::Fault;
use nix::{
    poll::{PollFd, PollFlags, poll},
    sys::signal::Signal,
};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, IsTerminal, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::FileTypeExt,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// What an attempt needs to know.
pub(super) struct Plan<'a> {
    pub(super) command: &'a [OsString],
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// The longest it may take.
    pub(super) limit: Option<Duration>,
    /// How long it has from TERM to KILL.
    pub(super) grace: Duration,
    /// Whether its standard output goes out as it comes.
    pub(super) stream: bool,
    pub(super) patterns: &'a Patterns,
}

/// How an attempt went.
pub(super) struct Ended {
    pub(super) how: How,
    pub(super) ran: Duration,
    /// Its standard output, unless that was streamed.
    pub(super) output: Spool,
    pub(super) found: Found,
    /// The signal that came to relent, and was passed on.
    pub(super) interrupted: Option<Signal>,
    /// Its processes, to end what is left of them; none if it could not be started.
    pub(super) group: Option<Group>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    Exited(u8),
    /// By this signal.
    Died(i32),
    TimedOut,
    CannotRun {
        not_found: bool,
        problem: String,
        hint: &'static str,
    },
}

impl How {
    /// The exit code that says so.
    pub(super) fn code(&self) -> u8 {
        match self {
            How::Exited(code) => *code,
            How::Died(signal) => died_by(*signal),
            How::TimedOut => 124,
            How::CannotRun { not_found: false, .. } => 126,
            How::CannotRun { not_found: true, .. } => 127,
        }
    }

    fn of(status: ExitStatus) -> How {
        match (status.code(), status.signal()) {
            (Some(code), _) => How::Exited(code as u8),
            (None, signal) => How::Died(signal.unwrap_or(0)),
        }
    }
}

/// The exit code of a death by signal.
pub(super) fn died_by(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Runs an attempt to its end.
pub(super) fn run(plan: &Plan<'_>, input: &mut Input, signals: &Signals) -> Result<Ended, Fault> {
    let terminal = input.is_terminal();
    let others = orphans::all();
    let started = Instant::now();
    let mut child = match start(plan, input)? {
        Ok(child) => child,
        Err(how) => return Ok(Ended::without_start(how)),
    };
    let group = Group::of(child.id(), others);
    let lent = if terminal && io::stdout().is_terminal() { Lent::to(&group) } else { None };
    let mut running = Running::new(plan, &mut child, input, &group, lent, started);
    match running.follow(&mut child, signals) {
        Ok(status) => {
            let mut ended = running.ended(status)?;
            ended.group = Some(group);
            Ok(ended)
        }
        Err(fault) => {
            group.signal_rest(Signal::SIGKILL);
            let _ = child.wait();
            Err(fault)
        }
    }
}

impl Ended {
    fn without_start(how: How) -> Ended {
        Ended {
            how,
            ran: Duration::ZERO,
            output: Spool::default(),
            found: Found::default(),
            interrupted: None,
            group: None,
        }
    }
}

fn start(plan: &Plan<'_>, input: &mut Input) -> Result<Result<Child, How>, Fault> {
    let Some((program, arguments)) = plan.command.split_first() else {
        return Err(Fault::new("no command given"));
    };
    let (out, err) = outputs(plan);
    let started = Command::new(program)
        .args(arguments)
        .envs(plan.environment.iter().map(|(name, value)| (name, value)))
        .stdin(input.stdio()?)
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .spawn();
    match started {
        Ok(child) => Ok(Ok(child)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory) => {
            Err(Fault::new(format!("cannot start another process: {error}")))
        }
        Err(error) => Ok(Err(cannot_run(Path::new(program), &error))),
    }
}

/// Its standard output and standard error.
///
/// What is neither kept nor searched the command gets as it is, but for a standard error that is a pipe: what it leaves
/// running would hold that open, and whoever reads it would wait for more after relent has ended.
fn outputs(plan: &Plan<'_>) -> (Stdio, Stdio) {
    let searched = !plan.patterns.is_empty();
    let piped = |yes: bool| if yes { Stdio::piped() } else { Stdio::inherit() };
    (piped(searched || !plan.stream), piped(searched || (!plan.stream && is_pipe(io::stderr()))))
}

fn is_pipe(fd: impl AsFd) -> bool {
    let file = fd.as_fd().try_clone_to_owned().map(File::from);
    let kind = file.and_then(|file| file.metadata()).map(|data| data.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

fn cannot_run(program: &Path, error: &io::Error) -> How {
    let name = program.display();
    let not_found = error.kind() == io::ErrorKind::NotFound;
    let (problem, hint) = match error.kind() {
        io::ErrorKind::NotFound if program.components().count() > 1 && program.exists() => {
            (format!("cannot execute {name}: its interpreter is not found"), "look at its first line, #!")
        }
        io::ErrorKind::NotFound if program.to_string_lossy().contains(' ') => {
            (format!("cannot find the command {name:?}"), "is it for a shell? relent run -- sh -c '...'")
        }
        io::ErrorKind::NotFound => {
            (format!("cannot find the command {name}"), "is it installed, and its folder on PATH?")
        }
        io::ErrorKind::PermissionDenied => {
            (format!("cannot execute {name}: permission denied"), "chmod +x makes a script executable")
        }
        _ => (format!("cannot execute {name}: {error}"), "it has to be a program, or a script that begins with #!"),
    };
    How::CannotRun { not_found, problem, hint }
}

/// A command under way.
struct Running<'a> {
    group: &'a Group,
    /// Whether the command may want the terminal.
    terminal: bool,
    lent: Option<Lent>,
    feed: Option<Feed<'a>>,
    out: Option<Stream<'a>>,
    err: Option<Stream<'a>>,
    started: Instant,
    grace: Duration,
    times_out: Option<Instant>,
    kill: Option<Instant>,
    timed_out: bool,
    interrupted: Option<Signal>,
}

impl<'a> Running<'a> {
    fn new(
        plan: &Plan<'a>,
        child: &mut Child,
        input: &'a mut Input,
        group: &'a Group,
        lent: Option<Lent>,
        started: Instant,
    ) -> Running<'a> {
        let terminal = input.is_terminal();
        let out_to = if plan.stream { Target::Out } else { Target::Keep(Spool::default()) };
        Running {
            group,
            terminal,
            lent,
            feed: input.feed(child.stdin.take()),
            out: child.stdout.take().map(|pipe| Stream::new(pipe.into(), out_to, plan.patterns)),
            err: child.stderr.take().map(|pipe| Stream::new(pipe.into(), Target::Err, plan.patterns)),
            started,
            grace: plan.grace,
            times_out: plan.limit.and_then(|limit| started.checked_add(limit)),
            kill: None,
            timed_out: false,
            interrupted: None,
        }
    }

    fn follow(&mut self, child: &mut Child, signals: &Signals) -> Result<ExitStatus, Fault> {
        loop {
            if let Some(signal) = signals.take() {
                self.interrupt(signal);
            }
            orphans::reap(Some(self.group.leader()));
            let status = child.try_wait().map_err(|error| Fault::new(format!("cannot wait for the command: {error}")));
            if let Some(status) = status? {
                return Ok(status);
            }
            match &self.lent {
                Some(lent) => lent.follow_stop(self.group),
                None if self.terminal => self.lent = Lent::on_demand(self.group),
                None => {}
            }
            self.keep_time(Instant::now());
            self.move_bytes(signals)?;
        }
    }

    fn interrupt(&mut self, signal: Signal) {
        self.group.signal(signal);
        self.interrupted.get_or_insert(signal);
        self.kill_after_grace(Instant::now());
    }

    fn keep_time(&mut self, now: Instant) {
        if self.times_out.is_some_and(|at| at <= now) {
            self.times_out = None;
            self.timed_out = true;
            self.group.signal(Signal::SIGTERM);
            self.kill_after_grace(now);
        }
        if self.kill.is_some_and(|at| at <= now) {
            self.kill = None;
            self.group.signal_rest(Signal::SIGKILL);
        }
    }

    fn kill_after_grace(&mut self, now: Instant) {
        self.kill = self.kill.or(now.checked_add(self.grace));
    }

    /// Waits until something can be read or written, or it is time for something, and moves what can be moved.
    fn move_bytes(&mut self, signals: &Signals) -> Result<(), Fault> {
        self.feed.take_if(|feed| feed.is_done());
        let ready = self.wait(signals)?;
        if let Some(feed) = &mut self.feed
            && (ready.closed || (ready.feed && !feed.step()?))
        {
            self.feed = None;
        }
        for (stream, is_ready) in [(&mut self.out, ready.out), (&mut self.err, ready.err)] {
            if let Some(stream) = stream
                && is_ready
            {
                stream.read_some()?;
            }
        }
        Ok(())
    }

    fn wait(&self, signals: &Signals) -> Result<Ready, Fault> {
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let out = self.out.as_ref().and_then(|stream| stream.poll(&mut fds));
        let err = self.err.as_ref().and_then(|stream| stream.poll(&mut fds));
        let sink = fds.len();
        let feed = self.feed.as_ref().map(|feed| {
            let (sink, source) = feed.polls();
            fds.push(sink);
            fds.extend(source);
            feed.wants()
        });
        let next = [self.times_out, self.kill].into_iter().flatten().min();
        let timeout = poll_timeout(next.map(|at| at.saturating_duration_since(Instant::now())));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(Fault::new(format!("cannot wait for the command: {error}"))),
        }
        let is_ready = |at: usize| fds[at].any().unwrap_or(true);
        Ok(Ready {
            out: out.is_some_and(is_ready),
            err: err.is_some_and(is_ready),
            feed: match feed {
                Some(Wants::Room) => is_ready(sink),
                Some(Wants::More) => is_ready(sink + 1),
                None => false,
            },
            closed: feed == Some(Wants::More) && is_ready(sink),
        })
    }

    fn ended(self, status: ExitStatus) -> Result<Ended, Fault> {
        let ran = self.started.elapsed();
        let mut found = Found::default();
        let mut output = Spool::default();
        for mut stream in [self.out, self.err].into_iter().flatten() {
            stream.drain()?;
            found = found.or(stream.search.finish());
            if let Target::Keep(spool) = stream.target {
                output = spool;
            }
        }
        let how = if self.timed_out { How::TimedOut } else { How::of(status) };
        let interrupted = self.interrupted.or(self.lent.and_then(|_| from_the_keyboard(&how)));
        Ok(Ended { how, ran, output, found, interrupted, group: None })
    }
}

/// A command that has the terminal gets Ctrl-C in our place; its death by it is meant for us too.
fn from_the_keyboard(how: &How) -> Option<Signal> {
    [Signal::SIGINT, Signal::SIGQUIT].into_iter().find(|signal| how.code() == died_by(*signal as i32))
}

struct Ready {
    out: bool,
    err: bool,
    feed: bool,
    closed: bool,
}

/// Where what is heard goes.
enum Target {
    Keep(Spool),
    Out,
    Err,
}

/// One of the command's output streams.
struct Stream<'a> {
    pipe: File,
    target: Target,
    patterns: &'a Patterns,
    search: Search<'a>,
    is_open: bool,
    /// Room for what is read, of which only what is used is ever touched.
    piece: Vec<u8>,
}

/// How much is read at once.
const PIECE: usize = 1 << 16;

impl<'a> Stream<'a> {
    fn new(pipe: OwnedFd, target: Target, patterns: &'a Patterns) -> Stream<'a> {
        make_nonblocking(&pipe);
        let search = Search::new(patterns);
        Stream { pipe: pipe.into(), target, patterns, search, is_open: true, piece: vec![0; PIECE] }
    }

    /// Adds itself to what is polled, and returns where.
    fn poll<'b>(&'b self, fds: &mut Vec<PollFd<'b>>) -> Option<usize> {
        self.is_open.then(|| {
            fds.push(PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN));
            fds.len() - 1
        })
    }

    /// Reads a piece, if there is one; how many bytes it was.
    fn read_some(&mut self) -> Result<usize, Fault> {
        match self.pipe.read(&mut self.piece) {
            Ok(0) => self.is_open = false,
            Ok(count) => {
                let piece = std::mem::take(&mut self.piece);
                let passed = self.pass_on(&piece[..count]);
                self.piece = piece;
                return passed.map(|()| count);
            }
            Err(error) if is_later(&error) => {}
            Err(error) => return Err(Fault::new(format!("cannot read the command's output: {error}"))),
        }
        Ok(0)
    }

    /// Reads what the command has left in the pipe, and not what others go on writing to it.
    fn drain(&mut self) -> Result<(), Fault> {
        let mut left = capacity(&self.pipe);
        while self.is_open && left > 0 {
            match self.read_some()? {
                0 => return Ok(()),
                count => left = left.saturating_sub(count),
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        self.is_open = false;
        self.pipe = File::open("/dev/null").map_err(|error| Fault::new(format!("cannot open /dev/null: {error}")))?;
        Ok(())
    }

    fn pass_on(&mut self, piece: &[u8]) -> Result<(), Fault> {
        if !self.patterns.is_empty() {
            self.search.feed(piece);
        }
        match &mut self.target {
            Target::Keep(spool) => spool.append(piece).map_err(cannot_keep),
            Target::Out => match io::stdout().write_all(piece).and_then(|()| io::stdout().flush()) {
                // Nobody reads any more (`| head`): the command is to notice as if it wrote there itself.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.close(),
                Err(error) => Err(Fault::new(format!("cannot write to standard output: {error}"))),
                Ok(()) => Ok(()),
            },
            Target::Err => {
                // Whoever read our stderr is gone; the command's outcome is not changed by that.
                let _ = io::stderr().write_all(piece);
                Ok(())
            }
        }
    }
}

/// How much a pipe holds at most.
#[cfg(target_os = "linux")]
fn capacity(pipe: &File) -> usize {
    use nix::fcntl::{FcntlArg, fcntl};
    fcntl(pipe, FcntlArg::F_GETPIPE_SZ).ok().and_then(|size| usize::try_from(size).ok()).unwrap_or(PIECE)
}

/// How much a pipe holds at most.
#[cfg(not(target_os = "linux"))]
fn capacity(_pipe: &File) -> usize {
    PIECE
}

fn cannot_keep(error: io::Error) -> Fault {
    Fault::new(format!("cannot keep the command's output: {error}"))
        .hint("name a larger folder in TMPDIR, or use --stream")
}
