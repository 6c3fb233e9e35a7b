-- The W3C trace context of whoever enqueued a task; null unless somebody traces. A transaction of the caller's own gives it
-- with SET LOCAL w3c.traceparent = '00-…', which any driver can, so that the functions keep their arguments.
ALTER TABLE windlass.task ADD COLUMN trace text;
-- In a statement of its own: with the column it would be reckoned for every row that is there.
ALTER TABLE windlass.task ALTER COLUMN trace SET DEFAULT nullif(current_setting('w3c.traceparent', true), '');
