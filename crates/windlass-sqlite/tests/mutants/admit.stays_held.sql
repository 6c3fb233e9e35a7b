-- Broken: a task that was let through is not ready. Breaks NO-STRANDED. Noticed by jobs::a_limit_is_never_exceeded
UPDATE task SET state = 3, ready_seq = ?1 WHERE id = ?2 AND state = 3
