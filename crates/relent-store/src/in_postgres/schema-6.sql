-- Version 6: what a process may spend of a budget before it tells again is nobody else's.
UPDATE relent_meta SET version = 6;

ALTER TABLE relent_upstream_process ADD COLUMN reserves bigint NOT NULL DEFAULT 0;

-- relent_merge_and_book, and what the others have reserved.
CREATE FUNCTION relent_merge_and_reserve(
    in_name bytea, in_process bytea, in_seq bigint, span bigint, in_calls bigint, in_retries bigint, in_successes bigint,
    in_failures bigint, in_run bigint, in_open boolean, is_last boolean, in_gap bigint, in_burst bigint, ahead bigint,
    wanted bigint, within bigint, back bigint, in_reserves bigint, reserved_for bigint,
    OUT all_calls bigint, OUT all_retries bigint, OUT all_successes bigint, OUT all_failures bigint, OUT in_a_row bigint,
    OUT all_processes bigint, OUT all_open bigint, OUT all_open_calls bigint, OUT by_hand boolean, OUT now_ms bigint,
    OUT gap bigint, OUT burst bigint, OUT permits bigint, OUT booked bigint, OUT at_once bigint, OUT wait bigint,
    OUT reserved bigint
) LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    SELECT p.seq INTO before FROM relent_upstream_process p WHERE p.name = in_name AND p.process = in_process;
    SELECT * INTO all_calls, all_retries, all_successes, all_failures, in_a_row, all_processes, all_open, all_open_calls,
        by_hand, now_ms, gap, burst, permits, booked, at_once, wait
        FROM relent_merge_and_book(in_name, in_process, in_seq, span, in_calls, in_retries, in_successes, in_failures, in_run,
            in_open, is_last, in_gap, in_burst, ahead, wanted, within, back);
    -- What was merged before changes nothing.
    IF before IS NULL OR before < in_seq THEN
        -- Calls of seconds that come again do not count twice.
        UPDATE relent_upstream_second s SET calls = 0
            WHERE s.name = in_name AND s.second > now_ms / 1000 AND s.calls > 0;
        UPDATE relent_upstream_process p SET reserves = in_reserves
            WHERE p.name = in_name AND p.process = in_process AND p.reserves <> in_reserves;
    END IF;
    SELECT coalesce(sum(p.reserves), 0) INTO reserved FROM relent_upstream_process p
        WHERE p.name = in_name AND p.process <> in_process AND p.seen BETWEEN now_ms - least(reserved_for, span * 1000)
        AND now_ms + span * 1000;
END $$;
