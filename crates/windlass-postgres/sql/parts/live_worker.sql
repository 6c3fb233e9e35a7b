-- Whether the lease of worker w is in force, the claim of that number was not undone, and the server knows the epoch of
-- leases. :claim_no. Index: primary key of lease_epoch.
w.ended_at IS NULL AND w.min_claim_no <= :claim_no AND w.expires_at > windlass.now_ms()
      AND EXISTS (SELECT 1 FROM windlass.lease_epoch AS e WHERE e.id = 1)
