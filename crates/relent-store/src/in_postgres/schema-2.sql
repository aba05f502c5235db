-- Version 2: a rate that all processes share. What version 1 has stays as it is, for those that run meanwhile.
UPDATE relent_meta SET version = 2;
CREATE TABLE relent_upstream_rate (
    name bytea PRIMARY KEY, gap bigint NOT NULL, burst bigint NOT NULL, owed bigint NOT NULL, at_ms bigint NOT NULL
);
CREATE TABLE relent_upstream_permits (
    name bytea NOT NULL, second bigint NOT NULL, permits bigint NOT NULL,
    PRIMARY KEY (name, second)
);

-- The same as Pace::book of the other engines; nanoseconds. The caller has locked the upstream's row.
CREATE FUNCTION relent_book(
    in_name bytea, at bigint, in_gap bigint, in_burst bigint, ahead bigint, wanted bigint, within bigint, back bigint,
    OUT booked bigint, OUT at_once bigint, OUT wait bigint
) LANGUAGE plpgsql AS $$
DECLARE
    r relent_upstream_rate;
    rest bigint := 0;
BEGIN
    SELECT * INTO r FROM relent_upstream_rate o WHERE o.name = in_name;
    IF FOUND THEN
        rest := greatest(0, r.owed - least(greatest(0, at - r.at_ms), 9007199254) * 1000000);
        rest := greatest(0, rest - least(in_gap::numeric * back, 9007199254740992)::bigint);
    END IF;
    booked := least(wanted, CASE WHEN rest > ahead + within THEN 0 ELSE (ahead + within - rest) / in_gap + 1 END);
    at_once := least(booked, CASE WHEN rest > ahead THEN 0 ELSE (ahead - rest) / in_gap + 1 END);
    wait := greatest(0, rest + at_once * in_gap - ahead);
    INSERT INTO relent_upstream_rate AS o VALUES (in_name, in_gap, in_burst, rest + booked * in_gap, at)
        ON CONFLICT (name) DO UPDATE SET gap = excluded.gap, burst = excluded.burst, owed = excluded.owed, at_ms = excluded.at_ms;
    IF booked <> back THEN
        INSERT INTO relent_upstream_permits AS p VALUES (in_name, at / 1000, greatest(0, booked - back))
            ON CONFLICT (name, second) DO UPDATE SET permits = greatest(0, p.permits + booked - back);
    END IF;
    DELETE FROM relent_upstream_permits p WHERE p.name = in_name AND p.second < at / 1000 - 3600;
END $$;

CREATE FUNCTION relent_rate(in_name bytea, at bigint, span bigint, OUT gap bigint, OUT burst bigint, OUT permits bigint)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT r.gap, r.burst INTO gap, burst FROM relent_upstream_rate r WHERE r.name = in_name;
    SELECT coalesce(sum(p.permits), 0) INTO permits FROM relent_upstream_permits p
        WHERE p.name = in_name AND p.second BETWEEN at / 1000 + 1 - span AND at / 1000;
END $$;

-- relent_merge, and what is booked with it.
CREATE FUNCTION relent_merge_and_book(
    in_name bytea, in_process bytea, in_seq bigint, span bigint, in_calls bigint, in_retries bigint, in_successes bigint,
    in_failures bigint, in_run bigint, in_open boolean, is_last boolean, in_gap bigint, in_burst bigint, ahead bigint,
    wanted bigint, within bigint, back bigint,
    OUT all_calls bigint, OUT all_retries bigint, OUT all_successes bigint, OUT all_failures bigint, OUT in_a_row bigint,
    OUT all_processes bigint, OUT all_open bigint, OUT all_open_calls bigint, OUT by_hand boolean, OUT now_ms bigint,
    OUT gap bigint, OUT burst bigint, OUT permits bigint, OUT booked bigint, OUT at_once bigint, OUT wait bigint
) LANGUAGE plpgsql AS $$
DECLARE
    is_new boolean;
BEGIN
    INSERT INTO relent_upstream AS u VALUES (in_name, 0, NULL) ON CONFLICT DO NOTHING;
    PERFORM 1 FROM relent_upstream u WHERE u.name = in_name FOR UPDATE;
    is_new := NOT EXISTS (
        SELECT 1 FROM relent_upstream_process o WHERE o.name = in_name AND o.process = in_process AND o.seq >= in_seq
    );
    SELECT * INTO all_calls, all_retries, all_successes, all_failures, in_a_row, all_processes, all_open, all_open_calls,
        by_hand, now_ms
        FROM relent_merge(in_name, in_process, in_seq, span, in_calls, in_retries, in_successes, in_failures, in_run, in_open,
            is_last)
        AS told (c bigint, r bigint, s bigint, f bigint, w bigint, p bigint, o bigint, oc bigint, h boolean, n bigint);
    IF in_gap IS NULL THEN
        booked := 0;
        at_once := 0;
        wait := 0;
    ELSIF is_new THEN
        SELECT * INTO booked, at_once, wait FROM relent_book(in_name, now_ms, in_gap, in_burst, ahead, wanted, within, back);
    ELSE
        SELECT * INTO booked, at_once, wait FROM relent_book(in_name, now_ms, in_gap, in_burst, ahead, 0, within, 0);
    END IF;
    SELECT * INTO gap, burst, permits FROM relent_rate(in_name, now_ms, span);
END $$;
