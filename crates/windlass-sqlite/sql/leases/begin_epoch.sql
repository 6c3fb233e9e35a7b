-- Begins the epoch of leases whose numbers start at ?1. Index: primary key.
INSERT INTO meta (name, value) VALUES ('lease_epoch', ?1)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
