-- How many rows of each sort there are: tasks by the code of their state, the rest by name. Scans: twice for
-- a copy.
SELECT state, NULL, count(*) FROM task GROUP BY state
UNION ALL
SELECT state, NULL, count(*) FROM history GROUP BY state
UNION ALL
SELECT NULL, 'paused queues', count(*) FROM paused_queue
UNION ALL
SELECT NULL, 'jobs', count(*) FROM job
UNION ALL
SELECT NULL, 'workflows', count(*) FROM workflow
UNION ALL
SELECT NULL, 'blocked workflows', count(*) FROM workflow WHERE blocked_by IS NOT NULL
UNION ALL
SELECT NULL, 'schedules', count(*) FROM schedule
UNION ALL
SELECT NULL, 'keys', count(*) FROM key
