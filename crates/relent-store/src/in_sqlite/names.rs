//! All statements, with the names of the tables in them.

use super::schema::named;

macro_rules! statements {
    ($($name:ident: $sql:literal,)*) => {
        /// Every statement, written once when the store is opened.
        #[derive(Debug)]
        pub(super) struct Names {
            $(pub(super) $name: String,)*
        }

        impl Names {
            pub(super) fn new(prefix: &str) -> Names {
                Names { $($name: named($sql, prefix),)* }
            }

            #[cfg(test)]
            pub(super) fn all(&self) -> Vec<&str> {
                vec![$(&self.$name,)*]
            }
        }
    };
}

statements! {
    last_fence: "SELECT value FROM relent_meta WHERE name = 'fence'",
    // A text would count from nothing.
    take_fences: "UPDATE relent_meta SET value = CASE typeof(value) WHEN 'integer' THEN value + ? ELSE -1 END WHERE name = 'fence' RETURNING value",
    get_once: "SELECT fingerprint, fence, nonce, since, from_ms, until_ms, IFNULL(ends, expires), failed, value, unknown
        FROM relent_once WHERE scope = ? AND key = ?",
    put_once: "INSERT OR REPLACE INTO relent_once
        (scope, key, fingerprint, fence, nonce, since, from_ms, until_ms, expires, failed, value, unknown)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    add_once: "INSERT INTO relent_once
        (scope, key, fingerprint, fence, nonce, since, from_ms, until_ms, expires, failed, value, unknown)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    complete_once: "UPDATE relent_once SET from_ms = ?4, until_ms = ?4, ends = ?5, failed = ?7, value = ?8
        WHERE scope = ?1 AND key = ?2 AND fence = ?3 AND failed IS NULL AND expires BETWEEN ?6 AND ?5",
    extend_once: "UPDATE relent_once SET from_ms = ?4, until_ms = ?5, ends = MAX(IFNULL(ends, expires), ?5)
        WHERE scope = ?1 AND key = ?2 AND fence = ?3 AND failed IS NULL AND from_ms <= ?4 AND until_ms > ?4
        AND expires >= ?6",
    del_once: "DELETE FROM relent_once WHERE scope = ? AND key = ?",
    get_lease: "SELECT owner, fence, nonce, from_ms, until_ms FROM relent_lease WHERE name = ?",
    put_lease: "INSERT OR REPLACE INTO relent_lease (name, owner, fence, nonce, from_ms, until_ms)
        VALUES (?, ?, ?, ?, ?, ?)",
    get_value: "SELECT version, nonce, written, value FROM relent_value WHERE key = ?",
    put_value: "INSERT OR REPLACE INTO relent_value (key, version, nonce, written, value) VALUES (?, ?, ?, ?, ?)",
    get_seen: "SELECT nonce, from_ms, expires FROM relent_seen WHERE scope = ? AND key = ?",
    put_seen: "INSERT OR REPLACE INTO relent_seen (scope, key, nonce, from_ms, expires) VALUES (?, ?, ?, ?, ?)",
    get_process: "SELECT seq, seen, is_open, calls, reserves FROM relent_upstream_process WHERE name = ? AND process = ?",
    put_process: "INSERT OR REPLACE INTO relent_upstream_process (name, process, seq, seen, is_open, calls, reserves)
        VALUES (?, ?, ?, ?, ?, ?, ?)",
    del_process: "DELETE FROM relent_upstream_process WHERE name = ? AND process = ?",
    old_processes: "DELETE FROM relent_upstream_process WHERE name = ? AND seen < ?",
    sum_processes: "SELECT COUNT(*), IFNULL(SUM(is_open), 0), IFNULL(SUM(is_open * calls), 0),
        IFNULL(SUM(CASE WHEN process <> ?4 AND seen >= ?5 THEN reserves END), 0)
        FROM relent_upstream_process WHERE name = ?1 AND seen BETWEEN ?2 AND ?3",
    add_second: "INSERT INTO relent_upstream_second (name, second, calls, retries, successes, failures)
        VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name, second) DO UPDATE SET calls = calls + excluded.calls,
        retries = retries + excluded.retries, successes = successes + excluded.successes,
        failures = failures + excluded.failures",
    come_again: "UPDATE relent_upstream_second SET calls = 0 WHERE name = ? AND second > ?",
    sum_seconds: "SELECT IFNULL(SUM(CASE WHEN second > ?2 AND second <= ?3 THEN calls END), 0), IFNULL(SUM(retries), 0), IFNULL(SUM(successes), 0),
        IFNULL(SUM(failures), 0) FROM relent_upstream_second WHERE name = ?1 AND second BETWEEN ?2 AND 2 * ?3 - ?2",
    get_rate: "SELECT gap, burst, owed, at_ms FROM relent_upstream_rate WHERE name = ?",
    put_rate: "INSERT OR REPLACE INTO relent_upstream_rate (name, gap, burst, owed, at_ms) VALUES (?, ?, ?, ?, ?)",
    add_permits: "INSERT INTO relent_upstream_permits (name, second, permits) VALUES (?1, ?2, MAX(0, ?3))
        ON CONFLICT (name, second) DO UPDATE SET permits = MAX(0, permits + ?3)",
    sum_permits: "SELECT IFNULL(SUM(permits), 0) FROM relent_upstream_permits WHERE name = ? AND second BETWEEN ? AND ?",
    old_permits: "DELETE FROM relent_upstream_permits WHERE name = ? AND second < ?",
    old_seconds: "DELETE FROM relent_upstream_second WHERE name = ? AND second < ?",
    get_run: "SELECT run, held FROM relent_upstream WHERE name = ?",
    put_run: "INSERT INTO relent_upstream (name, run, held) VALUES (?, ?, NULL)
        ON CONFLICT (name) DO UPDATE SET run = excluded.run",
    put_held: "INSERT INTO relent_upstream (name, run, held) VALUES (?, 0, ?)
        ON CONFLICT (name) DO UPDATE SET held = excluded.held",
    old_once: "SELECT scope, key FROM relent_once WHERE expires <= ?1 AND IFNULL(ends, expires) <= ?1
        ORDER BY expires LIMIT ?2",
    old_seen: "DELETE FROM relent_seen WHERE (scope, key) IN
        (SELECT scope, key FROM relent_seen WHERE expires <= ? ORDER BY expires LIMIT ?)",
    old_leases: "DELETE FROM relent_lease WHERE name IN
        (SELECT name FROM relent_lease WHERE until_ms <= ? LIMIT ?)",
    old_values: "DELETE FROM relent_value WHERE key IN
        (SELECT key FROM relent_value WHERE value IS NULL AND written <= ? LIMIT ?)",
    list_once: "SELECT scope, key FROM relent_once ORDER BY scope, key LIMIT ?",
    list_leases: "SELECT name, owner, fence, until_ms FROM relent_lease WHERE until_ms > ? ORDER BY name LIMIT ?",
    list_values: "SELECT key, version, LENGTH(value) FROM relent_value WHERE value IS NOT NULL ORDER BY key LIMIT ?",
    list_seen: "SELECT scope, key, expires FROM relent_seen WHERE expires > ? ORDER BY scope, key LIMIT ?",
    list_upstreams: "SELECT name FROM relent_upstream ORDER BY name LIMIT ?",
}
