-- The epoch of leases: the lowest number that a claim gives. A crash of the server can forget claims, and empties an unlogged table; so
-- without a row here nothing is claimed until the next epoch has begun, durably, in meta.
CREATE UNLOGGED TABLE windlass.lease_epoch (
  id integer PRIMARY KEY CHECK (id = 1),
  first_lease integer NOT NULL
);
INSERT INTO windlass.meta (name, value) VALUES ('lease_epoch', 0);
INSERT INTO windlass.lease_epoch (id, first_lease) VALUES (1, 0);
