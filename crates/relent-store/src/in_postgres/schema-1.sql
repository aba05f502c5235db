-- Version 1, to which the files after it add. Each operation is a function, so that it is one question and one answer, behind any pooler. The rules are those of
-- the engine's trait; the clock is the server's.
CREATE TABLE relent_meta (version integer NOT NULL);
INSERT INTO relent_meta VALUES (1);
CREATE SEQUENCE relent_fence;
CREATE TABLE relent_once (
    scope bytea NOT NULL, key bytea NOT NULL, fingerprint bytea NOT NULL, fence bigint NOT NULL, nonce bytea NOT NULL,
    since bigint NOT NULL, from_ms bigint NOT NULL, until_ms bigint NOT NULL, expires bigint NOT NULL, unknown bigint,
    failed boolean, value bytea,
    PRIMARY KEY (scope, key)
);
CREATE INDEX relent_once_expires ON relent_once (expires);
CREATE TABLE relent_lease (
    name bytea PRIMARY KEY, owner text NOT NULL, fence bigint NOT NULL, nonce bytea NOT NULL,
    from_ms bigint NOT NULL, until_ms bigint NOT NULL
);
CREATE TABLE relent_value (
    key bytea PRIMARY KEY, version bigint NOT NULL, nonce bytea NOT NULL, written bigint NOT NULL, value bytea
);
CREATE TABLE relent_seen (
    scope bytea NOT NULL, key bytea NOT NULL, nonce bytea NOT NULL, from_ms bigint NOT NULL, expires bigint NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX relent_seen_expires ON relent_seen (expires);
CREATE INDEX relent_seen_order ON relent_seen (scope, from_ms);
CREATE TABLE relent_upstream (name bytea PRIMARY KEY, run bigint NOT NULL, held boolean);
CREATE TABLE relent_upstream_second (
    name bytea NOT NULL, second bigint NOT NULL, calls bigint NOT NULL, retries bigint NOT NULL, successes bigint NOT NULL,
    failures bigint NOT NULL,
    PRIMARY KEY (name, second)
);
CREATE TABLE relent_upstream_process (
    name bytea NOT NULL, process bytea NOT NULL, seq bigint NOT NULL, seen bigint NOT NULL, is_open boolean NOT NULL,
    calls bigint NOT NULL,
    PRIMARY KEY (name, process)
);

CREATE FUNCTION relent_now() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';

-- What is left of what was written at from_ms and ends at until_ms. A clock that leaps back makes nothing longer.
CREATE FUNCTION relent_left(at bigint, from_ms bigint, until_ms bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    'SELECT greatest(0, least(until_ms - at, until_ms - from_ms))';

CREATE FUNCTION relent_begin(
    in_scope bytea, in_key bytea, in_fingerprint bytea, in_nonce bytea, lease bigint, kept bigint, takes_over boolean,
    OUT answer text, OUT number bigint, OUT also bigint, OUT has_failed boolean, OUT result bytea
) LANGUAGE plpgsql AS $$
DECLARE
    r relent_once;
    at bigint;
    busy bigint;
    new_fence bigint;
    new_since bigint;
    was_unknown bigint;
BEGIN
    LOOP
        SELECT * INTO r FROM relent_once o WHERE o.scope = in_scope AND o.key = in_key FOR UPDATE;
        at := relent_now();
        IF NOT FOUND THEN
            INSERT INTO relent_once VALUES (in_scope, in_key, in_fingerprint, nextval('relent_fence'), in_nonce, at, at,
                at + lease, at + greatest(kept, lease), NULL, NULL, NULL)
                ON CONFLICT DO NOTHING RETURNING fence INTO number;
            IF FOUND THEN
                answer := 'started';
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        busy := relent_left(at, r.from_ms, r.until_ms);
        IF relent_left(at, r.from_ms, r.expires) = 0 AND (r.failed IS NOT NULL OR busy = 0) THEN
            new_fence := nextval('relent_fence');
            new_since := at;
        ELSIF r.fingerprint <> in_fingerprint THEN
            answer := 'mismatch';
        ELSIF r.failed IS NOT NULL THEN
            answer := 'replay';
            has_failed := r.failed;
            result := r.value;
        ELSIF busy > 0 AND r.nonce = in_nonce THEN
            new_fence := r.fence;
            new_since := r.since;
            was_unknown := r.unknown;
        ELSIF busy > 0 THEN
            answer := 'busy';
            number := busy;
        ELSIF takes_over THEN
            new_fence := nextval('relent_fence');
            new_since := at;
            was_unknown := coalesce(r.unknown, r.since);
        ELSE
            answer := 'unknown';
            number := coalesce(r.unknown, r.since);
        END IF;
        IF answer IS NULL THEN
            UPDATE relent_once o SET fingerprint = in_fingerprint, fence = new_fence, nonce = in_nonce, since = new_since,
                from_ms = at, until_ms = at + lease, expires = at + greatest(kept, lease), unknown = was_unknown,
                failed = NULL, value = NULL
                WHERE o.scope = in_scope AND o.key = in_key;
            answer := 'started';
            number := new_fence;
            also := was_unknown;
        ELSIF at < r.from_ms THEN
            UPDATE relent_once o SET from_ms = at, until_ms = at + busy,
                expires = at + relent_left(at, r.from_ms, r.expires)
                WHERE o.scope = in_scope AND o.key = in_key;
        END IF;
        RETURN;
    END LOOP;
END $$;

CREATE FUNCTION relent_complete(
    in_scope bytea, in_key bytea, in_fence bigint, has_failed boolean, result bytea, kept bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at bigint;
BEGIN
    PERFORM 1 FROM relent_once o WHERE o.scope = in_scope AND o.key = in_key AND o.fence = in_fence FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    at := relent_now();
    UPDATE relent_once o SET failed = has_failed, value = result, from_ms = at, until_ms = at, expires = at + kept
        WHERE o.scope = in_scope AND o.key = in_key AND o.fence = in_fence AND o.failed IS NULL;
    RETURN true;
END $$;

CREATE FUNCTION relent_abandon(in_scope bytea, in_key bytea, in_fence bigint, forgets boolean)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    r relent_once;
    at bigint;
BEGIN
    SELECT * INTO r FROM relent_once o WHERE o.scope = in_scope AND o.key = in_key AND o.fence = in_fence FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    at := relent_now();
    IF r.failed IS NOT NULL THEN
        RETURN true;
    ELSIF forgets THEN
        DELETE FROM relent_once o WHERE o.scope = in_scope AND o.key = in_key;
    ELSE
        UPDATE relent_once o SET from_ms = at, until_ms = at, expires = at + relent_left(at, r.from_ms, r.expires)
            WHERE o.scope = in_scope AND o.key = in_key;
    END IF;
    RETURN true;
END $$;

CREATE FUNCTION relent_extend(in_scope bytea, in_key bytea, in_fence bigint, lease bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    r relent_once;
    at bigint;
BEGIN
    SELECT * INTO r FROM relent_once o WHERE o.scope = in_scope AND o.key = in_key AND o.fence = in_fence FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    at := relent_now();
    IF r.failed IS NOT NULL THEN
        RETURN true;
    ELSIF relent_left(at, r.from_ms, r.until_ms) = 0 THEN
        RETURN false;
    END IF;
    UPDATE relent_once o SET from_ms = at, until_ms = at + lease,
        expires = greatest(at + lease, at + relent_left(at, r.from_ms, r.expires))
        WHERE o.scope = in_scope AND o.key = in_key;
    RETURN true;
END $$;

CREATE FUNCTION relent_acquire(
    in_name bytea, in_owner text, in_nonce bytea, ttl bigint, OUT answer text, OUT number bigint, OUT also bigint, OUT holder text
) LANGUAGE plpgsql AS $$
DECLARE
    r relent_lease;
    at bigint;
    rest bigint;
BEGIN
    LOOP
        SELECT * INTO r FROM relent_lease l WHERE l.name = in_name FOR UPDATE;
        at := relent_now();
        IF NOT FOUND THEN
            INSERT INTO relent_lease VALUES (in_name, in_owner, nextval('relent_fence'), in_nonce, at, at + ttl)
                ON CONFLICT DO NOTHING RETURNING fence, until_ms INTO number, also;
            IF FOUND THEN
                answer := 'acquired';
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        rest := relent_left(at, r.from_ms, r.until_ms);
        IF rest > 0 AND r.nonce <> in_nonce THEN
            IF at < r.from_ms THEN
                UPDATE relent_lease l SET from_ms = at, until_ms = at + rest WHERE l.name = in_name;
            END IF;
            answer := 'held';
            number := rest;
            holder := r.owner;
            RETURN;
        END IF;
        number := CASE WHEN rest > 0 THEN r.fence ELSE nextval('relent_fence') END;
        also := at + ttl;
        UPDATE relent_lease l SET owner = in_owner, fence = number, nonce = in_nonce, from_ms = at, until_ms = also
            WHERE l.name = in_name;
        answer := 'acquired';
        RETURN;
    END LOOP;
END $$;

CREATE FUNCTION relent_renew(in_name bytea, in_fence bigint, ttl bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    r relent_lease;
    at bigint;
BEGIN
    SELECT * INTO r FROM relent_lease l WHERE l.name = in_name AND l.fence = in_fence FOR UPDATE;
    at := relent_now();
    IF NOT FOUND OR relent_left(at, r.from_ms, r.until_ms) = 0 THEN
        RETURN NULL;
    END IF;
    UPDATE relent_lease l SET from_ms = at, until_ms = at + ttl WHERE l.name = in_name;
    RETURN at + ttl;
END $$;

CREATE FUNCTION relent_release(in_name bytea, in_fence bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at bigint := relent_now();
BEGIN
    UPDATE relent_lease l SET from_ms = at, until_ms = at WHERE l.name = in_name AND l.fence = in_fence;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pg_notify('relent_freed', md5(in_name));
    RETURN true;
END $$;

CREATE FUNCTION relent_replace(
    in_key bytea, in_version bigint, in_nonce bytea, in_value bytea, OUT answer text, OUT number bigint, OUT there bytea
) LANGUAGE plpgsql AS $$
DECLARE
    r relent_value;
BEGIN
    LOOP
        SELECT * INTO r FROM relent_value v WHERE v.key = in_key FOR UPDATE;
        IF NOT FOUND THEN
            IF in_version <> 0 THEN
                answer := 'conflict';
                number := 0;
                RETURN;
            END IF;
            INSERT INTO relent_value VALUES (in_key, nextval('relent_fence'), in_nonce, relent_now(), in_value)
                ON CONFLICT DO NOTHING RETURNING version INTO number;
            IF FOUND THEN
                answer := 'replaced';
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        IF r.nonce = in_nonce AND r.version > in_version THEN
            answer := 'replaced';
            number := r.version;
        ELSIF r.version <> in_version AND NOT (in_version = 0 AND r.value IS NULL) THEN
            answer := 'conflict';
            number := r.version;
            there := r.value;
        ELSE
            UPDATE relent_value v SET version = nextval('relent_fence'), nonce = in_nonce, written = relent_now(), value = in_value
                WHERE v.key = in_key RETURNING version INTO number;
            answer := 'replaced';
        END IF;
        RETURN;
    END LOOP;
END $$;

-- The same as the documented statement for a transaction of the user's own, but for the nonce.
CREATE FUNCTION relent_first_time(in_scope bytea, in_key bytea, in_nonce bytea, kept bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at bigint := relent_now();
    seen bytea;
BEGIN
    INSERT INTO relent_seen AS s VALUES (in_scope, in_key, in_nonce, at, at + kept)
        ON CONFLICT (scope, key) DO UPDATE SET nonce = excluded.nonce, from_ms = excluded.from_ms, expires = excluded.expires
        WHERE relent_left(excluded.from_ms, s.from_ms, s.expires) = 0;
    IF FOUND THEN
        RETURN true;
    END IF;
    SELECT s.nonce INTO seen FROM relent_seen s WHERE s.scope = in_scope AND s.key = in_key;
    RETURN coalesce(seen = in_nonce, false);
END $$;

CREATE FUNCTION relent_shared(
    in_name bytea, at bigint, span bigint, OUT all_calls bigint, OUT all_retries bigint, OUT all_successes bigint,
    OUT all_failures bigint, OUT in_a_row bigint, OUT all_processes bigint, OUT all_open bigint, OUT all_open_calls bigint,
    OUT by_hand boolean, OUT now_ms bigint
) LANGUAGE plpgsql AS $$
BEGIN
    now_ms := at;
    SELECT coalesce(sum(s.calls), 0), coalesce(sum(s.retries), 0), coalesce(sum(s.successes), 0), coalesce(sum(s.failures), 0)
        INTO all_calls, all_retries, all_successes, all_failures FROM relent_upstream_second s
        WHERE s.name = in_name AND s.second BETWEEN at / 1000 + 1 - span AND at / 1000;
    SELECT count(*), count(*) FILTER (WHERE p.is_open), least(all_calls, coalesce(sum(p.calls) FILTER (WHERE p.is_open), 0))
        INTO all_processes, all_open, all_open_calls FROM relent_upstream_process p
        WHERE p.name = in_name AND p.seen >= at - span * 1000;
    SELECT u.run, u.held INTO in_a_row, by_hand FROM relent_upstream u WHERE u.name = in_name;
    in_a_row := coalesce(in_a_row, 0);
END $$;

CREATE FUNCTION relent_merge(
    in_name bytea, in_process bytea, in_seq bigint, span bigint, in_calls bigint, in_retries bigint, in_successes bigint,
    in_failures bigint, in_run bigint, in_open boolean, is_last boolean
) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    at bigint;
    p relent_upstream_process;
BEGIN
    INSERT INTO relent_upstream AS u VALUES (in_name, 0, NULL) ON CONFLICT DO NOTHING;
    PERFORM 1 FROM relent_upstream u WHERE u.name = in_name FOR UPDATE;
    at := relent_now();
    SELECT * INTO p FROM relent_upstream_process o WHERE o.name = in_name AND o.process = in_process;
    IF NOT FOUND OR p.seq < in_seq THEN
        INSERT INTO relent_upstream_second AS s VALUES (in_name, at / 1000, in_calls, in_retries, in_successes, in_failures)
            ON CONFLICT (name, second) DO UPDATE SET calls = s.calls + excluded.calls, retries = s.retries + excluded.retries,
            successes = s.successes + excluded.successes, failures = s.failures + excluded.failures;
        UPDATE relent_upstream u SET run = in_run + CASE WHEN in_successes > 0 THEN 0 ELSE u.run END WHERE u.name = in_name;
        IF is_last THEN
            DELETE FROM relent_upstream_process o WHERE o.name = in_name AND o.process = in_process;
        ELSE
            INSERT INTO relent_upstream_process AS o VALUES (in_name, in_process, in_seq, at, in_open, in_calls)
                ON CONFLICT (name, process) DO UPDATE SET seq = excluded.seq, seen = excluded.seen, is_open = excluded.is_open,
                calls = excluded.calls + o.calls * (span * 1000 - least(span * 1000, greatest(0, at - o.seen))) / (span * 1000);
        END IF;
        DELETE FROM relent_upstream_second s WHERE s.name = in_name AND s.second < at / 1000 - 3600;
        DELETE FROM relent_upstream_process o WHERE o.name = in_name AND o.seen < at - 3600000;
    END IF;
    RETURN QUERY SELECT * FROM relent_shared(in_name, at, span);
END $$;

CREATE FUNCTION relent_purge(most bigint, remembered bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    at bigint := relent_now();
    gone bigint := 0;
    removed bigint;
BEGIN
    WITH old AS (
        SELECT ctid FROM relent_once o WHERE o.expires <= at AND o.until_ms <= at ORDER BY o.expires LIMIT most
        FOR UPDATE SKIP LOCKED
    ) DELETE FROM relent_once o USING old WHERE o.ctid = old.ctid;
    GET DIAGNOSTICS removed = ROW_COUNT;
    gone := gone + removed;
    WITH old AS (
        SELECT ctid FROM relent_seen s WHERE s.expires <= at ORDER BY s.expires LIMIT most - gone FOR UPDATE SKIP LOCKED
    ) DELETE FROM relent_seen s USING old WHERE s.ctid = old.ctid;
    GET DIAGNOSTICS removed = ROW_COUNT;
    gone := gone + removed;
    WITH old AS (
        SELECT ctid FROM relent_lease l WHERE l.until_ms <= at - remembered LIMIT most - gone FOR UPDATE SKIP LOCKED
    ) DELETE FROM relent_lease l USING old WHERE l.ctid = old.ctid;
    GET DIAGNOSTICS removed = ROW_COUNT;
    gone := gone + removed;
    WITH old AS (
        SELECT ctid FROM relent_value v WHERE v.value IS NULL AND v.written <= at - remembered LIMIT most - gone
        FOR UPDATE SKIP LOCKED
    ) DELETE FROM relent_value v USING old WHERE v.ctid = old.ctid;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN gone + removed;
END $$;
