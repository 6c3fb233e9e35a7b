-- Skips ?1 worker ids. The store may have given them out after the copy was made; a worker that still lives
-- would take another worker's registration for its own. Scans: a restore happens once.
UPDATE sqlite_sequence SET seq = seq + ?1 WHERE name = 'worker'
