-- Sessions of browsers: each was started with a token. Only a hash of the secret is kept. Programs that do not know
-- this table leave the sessions of a token that they remove: a session without a token counts as none.
CREATE TABLE windlass.session (
  id text PRIMARY KEY,
  token text NOT NULL,
  hash bytea NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  seen_at bigint NOT NULL
);
CREATE INDEX session_token ON windlass.session (token, created_at);
CREATE INDEX session_expires ON windlass.session (expires_at);
