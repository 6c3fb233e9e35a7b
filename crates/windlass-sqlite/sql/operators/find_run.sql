-- One run. Index: primary key.
SELECT r.id, r.version, r.running, r.started_at, r.updated_at, r.body FROM run AS r WHERE r.id = ?1
