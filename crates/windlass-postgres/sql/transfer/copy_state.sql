-- What the target of a copy contains: live workers, whether it has tasks or anything else of its own, and how far a
-- copy has come. Index: worker_live, primary keys; each look ends at the first row.
SELECT
  (SELECT count(*) FROM windlass.worker AS w WHERE w.ended_at IS NULL AND w.expires_at > windlass.now_ms()),
  EXISTS (SELECT 1 FROM windlass.task) OR EXISTS (SELECT 1 FROM windlass.history),
  EXISTS (SELECT 1 FROM windlass.job) OR EXISTS (SELECT 1 FROM windlass.workflow)
    OR EXISTS (SELECT 1 FROM windlass.schedule) OR EXISTS (SELECT 1 FROM windlass.key)
    OR EXISTS (SELECT 1 FROM windlass.paused_queue),
  (SELECT m.value FROM windlass.meta AS m WHERE m.name = 'copy_source'),
  (SELECT m.value FROM windlass.meta AS m WHERE m.name = 'copy_place'),
  windlass.now_ms()
