-- Workflows whose steps were being cancelled. Scans the blocked ones: once, when the store is opened.
SELECT name FROM workflow WHERE blocked_by IS NOT NULL AND on_failure = 2
