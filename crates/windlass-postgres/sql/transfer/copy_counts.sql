-- How many rows there are of each sort: tasks by the code of their state, the rest by name. Scans: once or twice for a
-- copy.
SELECT t.state, NULL::text, count(*) FROM windlass.task AS t GROUP BY t.state
UNION ALL
SELECT h.state, NULL, count(*) FROM windlass.history AS h GROUP BY h.state
UNION ALL
SELECT NULL, 'paused queues', count(*) FROM windlass.paused_queue
UNION ALL
SELECT NULL, 'jobs', count(*) FROM windlass.job
UNION ALL
SELECT NULL, 'workflows', count(*) FROM windlass.workflow
UNION ALL
SELECT NULL, 'blocked workflows', count(*) FROM windlass.workflow AS w WHERE w.blocked_by IS NOT NULL
UNION ALL
SELECT NULL, 'schedules', count(*) FROM windlass.schedule
UNION ALL
SELECT NULL, 'keys', count(*) FROM windlass.key
