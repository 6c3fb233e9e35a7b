-- Bulk runs, and the last calls that changed something. Programs that do not know these tables leave them alone.
CREATE TABLE windlass.run (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  version bigint NOT NULL,
  running boolean NOT NULL,
  started_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  body text NOT NULL
);
CREATE INDEX run_running ON windlass.run (id) WHERE running;
CREATE TABLE windlass.call (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  who text NOT NULL,
  call text NOT NULL,
  about text NOT NULL,
  result text NOT NULL
);
