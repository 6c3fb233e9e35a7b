-- Brings back retired lanes that have tasks. An older program does not know that a lane can be retired, and may have
-- added them. Scans every unfinished or dead task, and only if there is a retired lane.
UPDATE lane SET retired = 0 WHERE retired <> 0 AND id IN (SELECT lane FROM task)
