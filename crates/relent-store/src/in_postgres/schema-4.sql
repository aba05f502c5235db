-- Version 4: keys of many callers are begun, and completed, in one transaction. What version 3 has stays as it is.
UPDATE relent_meta SET version = 4;

-- The keys that nobody had. All else has no answer here, and is asked about by relent_begin. Nobody waits long for a row that
-- somebody else is at, because all others wait with it.
CREATE FUNCTION relent_begin_many(
    in_scopes bytea[], in_keys bytea[], in_fingerprints bytea[], in_nonces bytea[], leases bigint[], keeps bigint[]
) RETURNS TABLE (asked bytea, number bigint) LANGUAGE plpgsql SET lock_timeout = '20ms' AS $$
DECLARE
    at bigint := relent_now();
BEGIN
    RETURN QUERY INSERT INTO relent_once AS o
        SELECT a.scope, a.key, a.fingerprint, nextval('relent_fence'), a.nonce, at, at, at + a.lease,
            at + greatest(a.keep, a.lease), NULL, NULL, NULL, at + greatest(a.keep, a.lease)
            FROM unnest(in_scopes, in_keys, in_fingerprints, in_nonces, leases, keeps)
                AS a (scope, key, fingerprint, nonce, lease, keep)
        ON CONFLICT DO NOTHING RETURNING o.nonce, o.fence;
END $$;

-- The claims that are completed by this, by their place. Whether another was before is for relent_complete to say. Rows are
-- found by their keys one after the other, as they come: so two who come in the same order never wait for each other.
CREATE FUNCTION relent_complete_many(
    in_scopes bytea[], in_keys bytea[], in_fences bigint[], have_failed boolean[], results bytea[], keeps bigint[]
) RETURNS SETOF bigint LANGUAGE plpgsql SET lock_timeout = '20ms' SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    at bigint := relent_now();
BEGIN
    RETURN QUERY UPDATE relent_once o SET failed = a.has_failed, value = a.result, from_ms = at, until_ms = at,
        expires = at + a.keep, settled = relent_settled(o.settled, at + a.keep)
        FROM unnest(in_scopes, in_keys, in_fences, have_failed, results, keeps) WITH ORDINALITY
            AS a (scope, key, fence, has_failed, result, keep, nth)
        WHERE o.scope = a.scope AND o.key = a.key AND o.fence = a.fence AND o.failed IS NULL RETURNING a.nth;
END $$;
