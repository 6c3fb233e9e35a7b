-- Waits until everything that was committed before is safe, as safe as commits of this session are to be. A commit waits for the disk
-- only if its transaction has a number and has written something: an empty message does both.
SELECT pg_logical_emit_message(true, 'windlass', '')::text
