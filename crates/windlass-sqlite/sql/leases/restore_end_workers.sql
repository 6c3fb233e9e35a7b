-- Ends every registration. Scans: a restore happens once.
UPDATE worker SET ended_at = ?1 WHERE ended_at IS NULL
