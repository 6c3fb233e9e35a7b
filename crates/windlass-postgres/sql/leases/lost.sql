-- Which of these leases a worker does not have. Index: primary key of task; the sum and OFFSET keep the server from any other.
-- $1 worker, $2 tasks, $3 lease numbers.
SELECT u.id, u.lease
FROM unnest($2::bigint[], $3::integer[]) AS u (id, lease)
WHERE NOT EXISTS (
  SELECT 1 FROM windlass.task AS t
  WHERE t.id = ANY (ARRAY[u.id]) AND t.lease = u.lease AND t.state + 0 = 2 AND t.worker IS NOT DISTINCT FROM $1
  OFFSET 0
)
