-- Waits until every earlier commit is on disk, or as safe as the settings of this session ask for. A commit waits for
-- the disk only if its transaction has a number and has written something: an empty message does both.
SELECT pg_logical_emit_message(true, 'windlass', '')::text
