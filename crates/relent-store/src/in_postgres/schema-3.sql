-- Version 3: what begins a key and what completes it is less work for the server.
UPDATE relent_meta SET version = 3;
-- A row is written again when it is completed. Its page keeps room for that, and no index has what changes then, so that none is
-- written with it: purge looks for `settled`, which is not after `expires`, and follows it only from afar.
ALTER TABLE relent_once ADD COLUMN IF NOT EXISTS settled bigint NOT NULL DEFAULT 0;
UPDATE relent_once SET settled = expires;
ALTER TABLE relent_once SET (fillfactor = 60);
DROP INDEX IF EXISTS relent_once_expires;
CREATE INDEX IF NOT EXISTS relent_once_settled ON relent_once (settled);

CREATE FUNCTION relent_settled(settled bigint, expires bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    'SELECT CASE WHEN settled > expires OR settled < expires - 60000 THEN expires ELSE settled END';

CREATE OR REPLACE FUNCTION relent_begin(
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
        at := relent_now();
        -- Most keys are begun once.
        INSERT INTO relent_once VALUES (in_scope, in_key, in_fingerprint, nextval('relent_fence'), in_nonce, at, at,
            at + lease, at + greatest(kept, lease), NULL, NULL, NULL, at + greatest(kept, lease))
            ON CONFLICT DO NOTHING RETURNING fence INTO number;
        IF FOUND THEN
            answer := 'started';
            RETURN;
        END IF;
        SELECT * INTO r FROM relent_once o WHERE o.scope = in_scope AND o.key = in_key FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        at := relent_now();
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
                failed = NULL, value = NULL, settled = relent_settled(o.settled, at + greatest(kept, lease))
                WHERE o.scope = in_scope AND o.key = in_key;
            answer := 'started';
            number := new_fence;
            also := was_unknown;
        ELSIF at < r.from_ms THEN
            UPDATE relent_once o SET from_ms = at, until_ms = at + busy,
                expires = at + relent_left(at, r.from_ms, r.expires),
                settled = relent_settled(o.settled, at + relent_left(at, r.from_ms, r.expires))
                WHERE o.scope = in_scope AND o.key = in_key;
        END IF;
        RETURN;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION relent_complete(
    in_scope bytea, in_key bytea, in_fence bigint, has_failed boolean, result bytea, kept bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at bigint := relent_now();
BEGIN
    UPDATE relent_once o SET failed = has_failed, value = result, from_ms = at, until_ms = at, expires = at + kept,
        settled = relent_settled(o.settled, at + kept)
        WHERE o.scope = in_scope AND o.key = in_key AND o.fence = in_fence AND o.failed IS NULL;
    -- It may be completed already.
    RETURN FOUND OR EXISTS (SELECT 1 FROM relent_once o WHERE o.scope = in_scope AND o.key = in_key AND o.fence = in_fence);
END $$;

CREATE OR REPLACE FUNCTION relent_abandon(in_scope bytea, in_key bytea, in_fence bigint, forgets boolean)
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
        UPDATE relent_once o SET from_ms = at, until_ms = at, expires = at + relent_left(at, r.from_ms, r.expires),
            settled = relent_settled(o.settled, at + relent_left(at, r.from_ms, r.expires))
            WHERE o.scope = in_scope AND o.key = in_key;
    END IF;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION relent_extend(in_scope bytea, in_key bytea, in_fence bigint, lease bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    r relent_once;
    at bigint;
    till bigint;
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
    till := greatest(at + lease, at + relent_left(at, r.from_ms, r.expires));
    UPDATE relent_once o SET from_ms = at, until_ms = at + lease, expires = till, settled = relent_settled(o.settled, till)
        WHERE o.scope = in_scope AND o.key = in_key;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION relent_purge(most bigint, remembered bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    at bigint := relent_now();
    gone bigint := 0;
    removed bigint;
BEGIN
    WITH old AS (
        SELECT ctid FROM relent_once o WHERE o.settled <= at AND o.expires <= at AND o.until_ms <= at ORDER BY o.settled
        LIMIT most FOR UPDATE SKIP LOCKED
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
