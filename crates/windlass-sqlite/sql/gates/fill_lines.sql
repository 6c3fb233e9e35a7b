-- Adds every held task that is missing from the line of its job. Scans: after a restore.
INSERT INTO held (job, lane, rank, id, crashes)
SELECT job, lane, iif(aside, 9223372036854775807, -priority), id, crashes FROM task WHERE state = 3 AND job IS NOT NULL
ON CONFLICT (job, lane, rank, id) DO NOTHING
