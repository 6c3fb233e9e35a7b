-- Tasks that were leased when the copy was made. Scans: a restore happens once.
SELECT id, attempt, lease, worker, claimed_at, log FROM task WHERE state = 2 ORDER BY id
