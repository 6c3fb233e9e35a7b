-- Broken: a task whose worker died is made ready without a check of its job. Breaks LIMIT. Noticed by own::no_commit_leaves_more_ready_than_the_limit_allows
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), fate AS MATERIALIZED (
  SELECT u.id, u.lease, u.is_dead, u.suspect, u.place
  FROM unnest($2::bigint[], $3::integer[], $4::boolean[], $5::integer[]) WITH ORDINALITY AS u (id, lease, is_dead, suspect, place)
), number AS MATERIALIZED (
  SELECT g.place, nextval('windlass.seq') AS number
  FROM generate_series(1, (SELECT max(abs(fate.suspect)) FROM fate)) AS g (place)
), item AS MATERIALIZED (
  SELECT
    f.id, f.lease, f.is_dead, sign(f.suspect)::bigint * n.number AS suspect, nextval('windlass.seq') AS ready_seq
  FROM (SELECT fate.* FROM fate ORDER BY fate.place) AS f LEFT JOIN number AS n ON n.place = abs(f.suspect)
)
UPDATE windlass.task AS t
SET
  state = CASE WHEN item.is_dead THEN 6 ELSE 1 END,
  ready_seq = CASE WHEN NOT item.is_dead THEN item.ready_seq END,
  paced = NULL,
  ended_at = CASE WHEN item.is_dead THEN (SELECT now FROM clock) END,
  attempt = greatest(t.attempt - 1, 0),
  crashes = t.crashes + 1,
  suspect = item.suspect,
  error = CASE WHEN item.is_dead THEN 'its process died with it ' || t.crashes + 1 || ' times' ELSE t.error END,
  log = windlass.logged(t.log, jsonb_build_array(
    t.attempt, t.lease, t.worker, t.claimed_at, (SELECT now FROM clock), 4, 'its process died with it'
  ))
FROM item
WHERE t.id = ANY (ARRAY[item.id]) AND t.lease = item.lease AND t.state + 0 = 2 AND t.worker IS NOT DISTINCT FROM $1
  AND t.cancel IS NULL
RETURNING t.id, t.lane, t.state, t.job, t.workflow, t.step
