-- Adds a call that changed something. ?1 when, ?2 who, ?3 the call, ?4 about what, ?5 its result. Index: primary key.
INSERT INTO call (at, who, call, about, result) VALUES (?1, ?2, ?3, ?4, ?5)
