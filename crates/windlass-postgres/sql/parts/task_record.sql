-- The columns of an unfinished or dead task t in lane l, as operate/record.rs reads them. :whole says whether payload
-- and log are read.
t.id, t.state, t.lane, l.queue, l.kind, t.priority, t.encoding,
  CASE WHEN :whole THEN t.payload END, t.job, t.workflow, t.key, t.lease, t.attempt,
  t.max_attempts, t.crashes, t.timeout_ms, t.due_at, t.claimed_at, t.ended_at, t.worker, t.progress, NULL::smallint,
  NULL::bytea, t.error, t.cancel, CASE WHEN :whole THEN t.log::text END, false
