-- Version 5: a window is never shorter than it is said to be. Of the second that its beginning cuts, and of what was told before the clock
-- went back, retries and ends of attempts count, calls do not. What somebody told whose clock was far ahead is no vote. The tables of version 4 stay as they are.
UPDATE relent_meta SET version = 5;

CREATE OR REPLACE FUNCTION relent_shared(
    in_name bytea, at bigint, span bigint, OUT all_calls bigint, OUT all_retries bigint, OUT all_successes bigint,
    OUT all_failures bigint, OUT in_a_row bigint, OUT all_processes bigint, OUT all_open bigint, OUT all_open_calls bigint,
    OUT by_hand boolean, OUT now_ms bigint
) LANGUAGE plpgsql AS $$
BEGIN
    now_ms := at;
    SELECT coalesce(sum(s.calls) FILTER (WHERE s.second > at / 1000 - span AND s.second <= at / 1000), 0), coalesce(sum(s.retries), 0),
        coalesce(sum(s.successes), 0), coalesce(sum(s.failures), 0)
        INTO all_calls, all_retries, all_successes, all_failures FROM relent_upstream_second s
        WHERE s.name = in_name AND s.second BETWEEN at / 1000 - span AND at / 1000 + span;
    SELECT count(*), count(*) FILTER (WHERE p.is_open), least(all_calls, coalesce(sum(p.calls) FILTER (WHERE p.is_open), 0))
        INTO all_processes, all_open, all_open_calls FROM relent_upstream_process p
        WHERE p.name = in_name AND p.seen BETWEEN at - span * 1000 AND at + span * 1000;
    SELECT u.run, u.held INTO in_a_row, by_hand FROM relent_upstream u WHERE u.name = in_name;
    in_a_row := coalesce(in_a_row, 0);
END $$;
