-- Broken: held tasks of a cancelled job stay. Breaks NO-STRANDED. Noticed by job_states::a_cancelled_job_cancels_waiting_and_new_tasks
SELECT held.id FROM held CROSS JOIN task ON task.id = held.id
WHERE held.job = ?1 AND held.id <= ?2 AND task.state = 3 AND false
ORDER BY held.lane, held.rank, held.id
LIMIT ?3
