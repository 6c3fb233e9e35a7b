-- What the writer caches of every job. Scans: once, when the store is opened.
SELECT name, delay_ms IS NOT NULL, again_at, state IN (2, 3) FROM job
WHERE delay_ms IS NOT NULL OR again_at IS NOT NULL OR state IN (2, 3)
