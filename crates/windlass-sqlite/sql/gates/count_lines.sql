-- The length of each line, including tasks that were admitted already. Scans: once, when the store is opened.
SELECT job, lane, count(*) FROM held WHERE rank < 9223372036854775807 GROUP BY job, lane
