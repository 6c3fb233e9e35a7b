-- Broken: admission looks at no jobs when the first worker registers. Breaks NO-STRANDED. Noticed by jobs::a_crash_gives_the_room_back
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, j.name
FROM windlass.job AS j
WHERE false AND j.state = 0
  AND (
    j.concurrency IS NULL OR NOT EXISTS (
      SELECT 1
      FROM windlass.worker AS w
      WHERE w.ended_at IS NULL AND w.registered_at < (SELECT windlass.now_ms()) - 2000 AND w.expires_at > (SELECT windlass.now_ms())
    )
  )
  AND EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.job = j.name AND t.state = 3 AND NOT t.parked AND NOT t.aside OFFSET 0)
