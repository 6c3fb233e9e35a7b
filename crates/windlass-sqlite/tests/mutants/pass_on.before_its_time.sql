-- Broken: a head is ready before it is due. Breaks SCHEDULE. Noticed by workflows::a_step_that_is_due_later_holds_up_the_rest
UPDATE task SET state = max(?1, 1), due_at = ?2, ready_seq = ?3, start_at = NULL WHERE id = ?4 AND state = 4
