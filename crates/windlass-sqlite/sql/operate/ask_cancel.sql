-- Records the request that a running attempt end. Index: primary key.
UPDATE task SET cancel = ?1 WHERE id = ?2 AND state = 2
