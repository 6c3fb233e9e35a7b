-- Takes rows of gate_todo. Other admissions skip the rows that this one takes. The commit does not wait for the disk:
-- an admission that is lost in a crash of the server never was, and its rows are still there. $1 how many at most.
-- Index: gate_todo_at.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now, set_config('synchronous_commit', 'off', true)
), due AS MATERIALIZED (
  SELECT g.ctid AS place
  FROM windlass.gate_todo AS g
  WHERE g.at <= (SELECT now FROM clock)
  ORDER BY g.at
  LIMIT $1
  FOR UPDATE SKIP LOCKED
)
DELETE FROM windlass.gate_todo AS g
WHERE g.ctid = ANY (ARRAY(SELECT place FROM due))
RETURNING g.kind, g.key
