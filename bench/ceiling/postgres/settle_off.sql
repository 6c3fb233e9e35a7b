-- $1 tasks, $2 leases, $3 not used.
DELETE FROM windlass.task AS t
USING unnest($1::bigint[], $2::integer[]) AS u (id, lease)
WHERE t.id = u.id AND t.lease = u.lease AND t.state + 0 = 2 AND $3::bigint > 0
