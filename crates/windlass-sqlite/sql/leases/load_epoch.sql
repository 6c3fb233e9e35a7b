-- The epoch of leases: the lowest lease number that a claim gives. Index: primary key.
SELECT value FROM meta WHERE name = 'lease_epoch'
