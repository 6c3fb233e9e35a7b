-- Creates or updates a job. Index: primary key.
INSERT INTO job (name, state, concurrency, delay_ms, last_start, over_limit, at_limit, gone_before, again_at, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (name) DO UPDATE SET
  state = excluded.state, concurrency = excluded.concurrency, delay_ms = excluded.delay_ms,
  last_start = excluded.last_start, over_limit = excluded.over_limit, at_limit = excluded.at_limit,
  gone_before = excluded.gone_before, again_at = excluded.again_at
