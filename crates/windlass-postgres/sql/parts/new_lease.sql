-- The lease number of a task's next claim: one more, or the first of this epoch, so that a crash of the server which
-- forgets claims never gives a number out twice. Index: primary key of lease_epoch.
greatest(lease + 1, (SELECT e.first_lease FROM windlass.lease_epoch AS e WHERE e.id = 1))
