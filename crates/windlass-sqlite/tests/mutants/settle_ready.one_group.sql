-- Broken: every suspect is in the same group. Breaks POISON-CONTAINED. Noticed by suspects::a_crash_splits_the_group_that_ran
UPDATE task
SET state = ?8, ready_seq = ?1, attempt = ?2, crashes = ?3, suspect = min(?9, 0), log = ?4, cancel = NULL
WHERE id = ?5 AND lease = ?6 AND worker = ?7 AND state = 2
