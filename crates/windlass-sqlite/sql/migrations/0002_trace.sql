-- The W3C trace context of whoever enqueued a task. Null unless somebody traces; then a plain insert does not name it.
ALTER TABLE task ADD COLUMN trace TEXT;
