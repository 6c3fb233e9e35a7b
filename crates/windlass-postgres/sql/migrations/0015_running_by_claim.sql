-- Running tasks by worker and claim: a comparison of leases reads the claims since the last one, and a claim
-- that is undone is found by its number. Neither passes over the entries of tasks that ended before, which a
-- held snapshot keeps in the index.
DROP INDEX windlass.task_running;
CREATE INDEX task_running ON windlass.task (worker, claim_no) WHERE state = 2;
