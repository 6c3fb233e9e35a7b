-- Broken: room that no admission gave out stays unused. Breaks NO-STRANDED. Noticed by own::the_leader_gives_out_unused_room
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, j.name
FROM windlass.job AS j
WHERE j.state = 9
  AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 3 AND NOT t.parked AND NOT t.aside OFFSET 0)
  AND CASE WHEN j.concurrency IS NULL
    THEN NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 1 OFFSET 0)
    ELSE (SELECT count(*) FROM windlass.task AS t WHERE t.job = j.name AND t.state = 1)
      + (SELECT count(*) FROM windlass.task AS t WHERE t.job = j.name AND t.state = 2) < j.concurrency
  END
