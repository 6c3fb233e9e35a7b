-- Forgets workflows that have no unfinished step and are not blocked. $1 locked workflows. Index: primary key,
-- task_step; without OFFSET the server could read all of that index for a join.
DELETE FROM windlass.workflow AS w
WHERE w.name = ANY ($1) AND w.blocked_by IS NULL
  AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.workflow = w.name AND t.state <> 6 OFFSET 0)
