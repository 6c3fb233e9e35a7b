-- The task of an expired key is still kept: look again later. Index: primary key.
UPDATE key SET expires_at = ?3 WHERE queue = ?1 AND key = ?2
