-- Moves a lease of this claim to another worker of the same claim. Index: primary key.
UPDATE task
SET worker = ?1, claim_no = ?2
WHERE id = ?3 AND state = 2
