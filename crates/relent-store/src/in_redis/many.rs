//! Keys and leases that are begun and ended together: what gathers, and how it is asked.

use super::{
    Redis,
    answers::{acquired, kept, started},
    nonsense,
    packed::digits,
    scripts::Script,
};
use crate::{
    Acquired, Error, Fence, Kept, Started, Stored,
    gather::{Gather, Many},
};
use redis::{Cmd, ErrorKind, FromRedisValue, Value};
use std::time::Duration;

/// How many questions of a kind are under way before others gather.
const LANES: usize = 1;

/// How many bytes a result may have that is kept together with others.
const SMALL: usize = 1 << 14;

/// What gathers, by its kind.
#[derive(Default)]
pub(super) struct Gathered {
    begins: Gather<Beginning>,
    completions: Gather<Completing>,
    leases: Gather<Acquiring>,
    releases: Gather<Releasing>,
}

/// A record that is to be made.
pub(super) struct Beginning {
    pub(super) name: String,
    pub(super) packed: Vec<u8>,
    pub(super) keep: u64,
    pub(super) takes_over: bool,
}

/// A record that is to be completed.
pub(super) struct Completing {
    pub(super) name: String,
    pub(super) fence: Fence,
    pub(super) stored: Stored,
    pub(super) keep: u64,
}

/// A lease that is to be taken.
pub(super) struct Acquiring {
    pub(super) name: String,
    pub(super) packed: Vec<u8>,
    pub(super) keep: u64,
    pub(super) ttl: Duration,
}

/// A lease that is to be let go, and where that is told.
pub(super) struct Releasing {
    pub(super) name: String,
    pub(super) fence: Fence,
    pub(super) channel: String,
}

/// Whether it is small enough to go with others.
pub(super) fn is_small(stored: &Stored) -> bool {
    stored.bytes().len() <= SMALL
}

/// How a kind of result is named in a script.
pub(super) fn kind(stored: &Stored) -> &'static str {
    if stored.is_failure() { "f" } else { "s" }
}

impl Redis {
    /// What a script for many answers to each; `None` for what is to be asked alone.
    async fn answers<T: FromRedisValue>(&self, script: &Script, command: &Cmd) -> Result<Vec<Option<T>>, Error> {
        let (question, answer) = self.asked::<Vec<Value>>(script, command).await?;
        if answer.as_ref().is_err_and(|err| matches!(err.kind(), ErrorKind::Server(_) | ErrorKind::Extension)) {
            // Whose fault it is will be seen when each is asked alone; what was done of it is not done twice.
            return Ok(vec![]);
        }
        let answers = question.answered(answer)?.into_iter().map(|answer| match answer {
            Value::Nil => Ok(None),
            answer => T::from_redis_value(answer).map(Some).map_err(|_| nonsense()),
        });
        answers.collect()
    }
}

impl Many for Beginning {
    type Engine = Redis;
    type Answer = Started;

    const LANES: usize = LANES;

    fn gather(redis: &Redis) -> &Gather<Beginning> {
        &redis.inner.gathered.begins
    }

    async fn ask(redis: &Redis, those: Vec<Beginning>) -> Result<Vec<Option<Started>>, Error> {
        let script = &redis.inner.scripts.begin_many;
        let mut command = script.on_all(those.iter().map(|one| one.name.as_str()));
        for one in &those {
            command.arg(&one.packed[..]).arg(one.keep).arg(u8::from(one.takes_over));
        }
        let answers = redis.answers(script, &command).await?;
        answers.into_iter().map(|answer| answer.map(started).transpose()).collect()
    }
}

impl Many for Completing {
    type Engine = Redis;
    type Answer = Kept;

    const LANES: usize = LANES;

    fn gather(redis: &Redis) -> &Gather<Completing> {
        &redis.inner.gathered.completions
    }

    async fn ask(redis: &Redis, those: Vec<Completing>) -> Result<Vec<Option<Kept>>, Error> {
        let script = &redis.inner.scripts.complete_many;
        let mut command = script.on_all(those.iter().map(|one| one.name.as_str()));
        for one in &those {
            command.arg(&digits(one.fence.0)[..]).arg(kind(&one.stored));
            command.arg(one.keep).arg(&digits(one.keep)[..]).arg(one.stored.bytes());
        }
        let answers = redis.answers(script, &command).await?;
        Ok(answers.into_iter().map(|answer| answer.map(kept)).collect())
    }
}

impl Many for Acquiring {
    type Engine = Redis;
    type Answer = Acquired;

    const LANES: usize = LANES;

    fn gather(redis: &Redis) -> &Gather<Acquiring> {
        &redis.inner.gathered.leases
    }

    async fn ask(redis: &Redis, those: Vec<Acquiring>) -> Result<Vec<Option<Acquired>>, Error> {
        let script = &redis.inner.scripts.acquire_many;
        let mut command = script.on_all(those.iter().map(|one| one.name.as_str()));
        for one in &those {
            command.arg(&one.packed[..]).arg(one.keep);
        }
        let answers = redis.answers(script, &command).await?.into_iter().zip(&those);
        answers.map(|(answer, one)| answer.map(|answer| acquired(answer, one.ttl)).transpose()).collect()
    }
}

impl Many for Releasing {
    type Engine = Redis;
    type Answer = Kept;

    const LANES: usize = LANES;

    fn gather(redis: &Redis) -> &Gather<Releasing> {
        &redis.inner.gathered.releases
    }

    async fn ask(redis: &Redis, those: Vec<Releasing>) -> Result<Vec<Option<Kept>>, Error> {
        let script = &redis.inner.scripts.release_many;
        let mut command = script.on_all(those.iter().map(|one| one.name.as_str()));
        for one in &those {
            command.arg(&digits(one.fence.0)[..]).arg(one.channel.as_str());
        }
        let answers = redis.answers(script, &command).await?;
        Ok(answers.into_iter().map(|answer| answer.map(kept)).collect())
    }
}
