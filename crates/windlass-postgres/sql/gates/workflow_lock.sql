-- Locks workflows, in the order of their names. $1 names. Index: primary key.
SELECT w.name, w.on_failure, w.blocked_by, w.forgiven_step
FROM windlass.workflow AS w
WHERE w.name = ANY ($1)
ORDER BY w.name
FOR NO KEY UPDATE
