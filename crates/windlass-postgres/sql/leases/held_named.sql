-- Those of the named leases that a worker has. Index: primary key of task; the sums and OFFSET keep the server from
-- using any other. $1 worker, $2 tasks, $3 lease numbers.
SELECT t.id, t.lease, t.workflow, t.claim_no
FROM unnest($2::bigint[], $3::integer[]) AS u (id, lease)
CROSS JOIN LATERAL (
  SELECT task.id, task.lease, task.workflow, task.claim_no
  FROM windlass.task
  WHERE task.id = ANY (ARRAY[u.id]) AND task.lease = u.lease AND task.state + 0 = 2 AND task.worker IS NOT DISTINCT FROM $1
  OFFSET 0
) AS t
ORDER BY t.id
