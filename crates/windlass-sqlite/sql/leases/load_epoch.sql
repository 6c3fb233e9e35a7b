-- The epoch of leases: the lowest number that a claim gives. Index: primary key.
SELECT value FROM meta WHERE name = 'lease_epoch'
