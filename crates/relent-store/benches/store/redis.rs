//! Redis, beside a pair of scripts.

use crate::{
    ROUNDS,
    cost::Cost,
    next,
    rate::row,
    servers::RedisServer,
    work::{leased, pair},
};
use redis::{Script, aio::MultiplexedConnection};
use relent_store::{Nonce, in_redis::Redis};
use std::sync::Arc;

const CLAIM: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 60000)";
const DONE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('SET', KEYS[1], ARGV[2], 'PX', 60000) end";
const FREE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end";

async fn raw_pair(mut connection: MultiplexedConnection, scripts: Arc<[Script; 2]>) {
    let (key, nonce) = (format!("raw:{}", next()), Nonce::random().0);
    let _: redis::Value = scripts[0].key(&key).arg(&nonce[..]).invoke_async(&mut connection).await.unwrap();
    let _: redis::Value = scripts[1].key(&key).arg(&nonce[..]).arg("done").invoke_async(&mut connection).await.unwrap();
}

pub(crate) async fn all() {
    let server = RedisServer::start(&["--appendonly", "no"]);
    let connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let engine = Redis::open(&server.url(), "relent_").await.unwrap();
    let [mut raw, mut ours, mut raw_leases, mut leases] = [(); 4].map(|()| vec![]);
    let mut costs = [Cost::default(); 4];
    let pid = server.pid();
    let scripts = |second| Arc::new([Script::new(CLAIM), Script::new(second)]);
    for _ in 0..ROUNDS {
        for (nth, second, rates) in [(0, DONE, &mut raw), (1, FREE, &mut raw_leases)] {
            let (connection, scripts) = (connection.clone(), scripts(second));
            rates.push(costs[nth].of(pid, 64, move || raw_pair(connection.clone(), scripts.clone())).await);
        }
        let one = engine.clone();
        let cycle = move || {
            let one = one.clone();
            async move { pair(&one).await }
        };
        ours.push(costs[2].of(pid, 64, cycle).await);
        let one = engine.clone();
        let cycle = move || {
            let one = one.clone();
            async move { leased(&one).await }
        };
        leases.push(costs[3].of(pid, 64, cycle).await);
    }
    row("Redis, begin and complete, 64 callers", raw, ours, "0.9");
    row("Redis, lease and release, 64 callers", raw_leases, leases, "0.9");
    for (nth, what) in
        ["claim by hand", "lease by hand", "begin and complete", "lease and release"].into_iter().enumerate()
    {
        costs[nth].say(what);
    }
}
