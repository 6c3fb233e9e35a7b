-- The columns of a kept task h in lane l, as operate/record.rs reads them. :whole says whether payload, output and log
-- are read.
h.id, h.state, h.lane, l.queue, l.kind, h.priority, h.encoding,
  CASE WHEN :whole THEN h.payload END, h.job, h.workflow, h.key, h.lease, h.attempt,
  h.max_attempts, 0, h.timeout_ms, NULL::bigint, h.started_at, h.ended_at, h.worker, h.progress, h.output_encoding,
  CASE WHEN :whole THEN h.output END, h.error, NULL::text, CASE WHEN :whole THEN h.log::text END, h.ran
