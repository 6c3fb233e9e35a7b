-- How long the lines are, with those that were let through. Scans: once, when the store is opened.
SELECT job, lane, count(*) FROM held GROUP BY job, lane
