-- The last place in the ready line. Scans: a restore happens once.
SELECT coalesce(max(ready_seq), 0) FROM task
