-- Leaves out ids of workers that may have been given out after the copy was made: a worker that still lives would take another's
-- registration for its own. ?1 how many. Scans: a restore happens once.
UPDATE sqlite_sequence SET seq = seq + ?1 WHERE name = 'worker'
