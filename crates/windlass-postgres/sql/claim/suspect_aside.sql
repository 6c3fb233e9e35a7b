-- Suspects that have a job return to its line if their group is next, and leave it if their group has to wait and runs
-- nowhere. A suspect that another transaction has locked is left to the next claim. $1 lanes, $2 groups that are next.
-- Index: task_suspect_waiting, task_suspect_running; the update goes by ctid.
WITH running AS MATERIALIZED (
  SELECT DISTINCT coalesce(t.suspect, 0) AS suspect FROM windlass.task AS t WHERE t.state = 2 AND t.crashes >= 2
), pick AS MATERIALIZED (
  SELECT t.ctid AS place
  FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
  WHERE t.crashes >= 2 AND (t.state = 1 OR (t.state = 3 AND t.aside)) AND t.lane = ANY($1) AND t.job IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue AS p WHERE p.queue = l.queue)
    AND CASE WHEN t.state = 3 THEN coalesce(t.suspect, 0) = ANY($2)
      ELSE NOT (coalesce(t.suspect, 0) = ANY($2)) AND coalesce(t.suspect, 0) NOT IN (SELECT r.suspect FROM running AS r)
    END
  -- The sum keeps the server from reading all tasks in the order of the primary key.
  ORDER BY t.id + 0
  FOR UPDATE OF t SKIP LOCKED
), moved AS (
  UPDATE windlass.task AS t
  SET aside = t.state = 1, state = 3, ready_seq = NULL, paced = NULL
  WHERE t.ctid = ANY (ARRAY(SELECT pick.place FROM pick)) AND t.state IN (1, 3)
  RETURNING t.job
), todo AS (
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 0::smallint, moved.job FROM moved
)
SELECT count(*) FROM moved
