-- Ends a registration and stores the worker's last report. Index: primary key.
UPDATE worker
SET ended_at = ?2, renewed_at = max(renewed_at, ?3), memory_usage = ?4, factor = ?5, reason = ?6, counts = ?7
WHERE id = ?1 AND ended_at IS NULL
