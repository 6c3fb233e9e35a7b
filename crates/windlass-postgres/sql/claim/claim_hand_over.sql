-- Gives leases of this claim to other workers of it. By array and not by join, so that the server never reads the index
-- whole.
-- Index: primary key of task. $1 tasks, $2 workers, $3 claim numbers.
UPDATE windlass.task AS t
SET worker = ($2::bigint[])[array_position($1::bigint[], t.id)],
  claim_no = ($3::bigint[])[array_position($1::bigint[], t.id)]
WHERE t.id = ANY ($1::bigint[]) AND t.state = 2
RETURNING t.id
