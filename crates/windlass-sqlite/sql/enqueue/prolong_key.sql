-- The history still keeps the task of an expired key: checks that key again later. Index: primary key.
UPDATE key SET expires_at = ?3 WHERE queue = ?1 AND key = ?2
