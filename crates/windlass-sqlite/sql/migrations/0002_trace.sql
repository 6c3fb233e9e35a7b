-- The W3C trace context of the caller that enqueued a task. Null without tracing; then a plain insert omits
-- it.
ALTER TABLE task ADD COLUMN trace TEXT;
