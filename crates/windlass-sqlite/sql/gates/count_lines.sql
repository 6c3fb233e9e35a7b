-- How long the lines are, with those that were let through. Scans: once, when the store is opened.
SELECT job, lane, count(*) FROM held WHERE rank < 9223372036854775807 GROUP BY job, lane
