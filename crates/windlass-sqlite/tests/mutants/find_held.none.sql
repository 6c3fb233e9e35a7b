-- Broken: a job with room lets nothing through. Breaks NO-STRANDED. Noticed by jobs::a_limit_is_never_exceeded
SELECT rank, id, crashes FROM held
WHERE job = ?1 AND lane = ?2 AND (rank, id) > (?3, ?4) AND false
ORDER BY rank, id
LIMIT ?5
