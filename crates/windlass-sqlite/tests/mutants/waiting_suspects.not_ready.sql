-- Broken: ready suspects are not seen, so they keep the room of their job. Breaks POISON-CONTAINED. Noticed by suspects::a_suspect_that_waits_gives_its_room_to_others
SELECT id, coalesce(suspect, 0), crashes, state, job, priority FROM task
WHERE lane = ?1 AND crashes >= 2 AND ended_at IS NULL AND state = 3 AND aside
