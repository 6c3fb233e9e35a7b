-- Refuses claims up to a number that may still arrive. Index: primary key.
UPDATE worker SET min_claim_no = max(min_claim_no, ?2) WHERE id = ?1
