-- Adds calls that changed something. $1 how long ago each was answered, $2 who, $3 the call, $4 about what, $5 its
-- result.
INSERT INTO windlass.call AS c (at, who, call, about, result)
SELECT windlass.now_ms() - n.age, n.who, n.call, n.about, n.result
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[])
  WITH ORDINALITY AS n (age, who, call, about, result, place)
ORDER BY n.place
