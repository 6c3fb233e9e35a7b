-- Unblocks workflows. If asked, the failures of all steps up to the last one now are forgiven. $1 names, $2 whether to
-- forgive. Index: primary key.
UPDATE windlass.workflow AS w
SET blocked_by = NULL,
  forgiven_step = CASE
    WHEN $2 THEN (SELECT max(t.step) FROM windlass.task AS t WHERE t.workflow = w.name AND t.state <> 6)
    ELSE w.forgiven_step
  END
WHERE w.name = ANY ($1)
