-- Broken: a task that is handed back is ready without regard to its job. Breaks LIMIT. Noticed by jobs::a_hand_back_gives_the_room_back
UPDATE task
SET state = iif(?8 = 3, 1, ?8), ready_seq = ?1, attempt = ?2, crashes = ?3, suspect = ?9, log = ?4, cancel = NULL
WHERE id = ?5 AND lease = ?6 AND worker = ?7 AND state = 2
