-- The highest values of the store's counters and sequences. Scans: once for a copy.
SELECT
  max(
    (SELECT last_id FROM figure WHERE id = 1), coalesce((SELECT max(id) FROM task), 0), coalesce((SELECT max(id) FROM history), 0)
  ),
  max(
    coalesce((SELECT max(max(coalesce(ready_seq, 0), coalesce(step, 0))) FROM task), 0),
    coalesce((SELECT max(forgiven_step) FROM workflow), 0)
  ),
  coalesce((SELECT max(id) FROM worker), 0),
  (SELECT min(ended_at) FROM history),
  (SELECT max(ended_at) FROM history)
