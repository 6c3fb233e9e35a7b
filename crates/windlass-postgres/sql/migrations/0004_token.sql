-- Tokens of the API: what their bearers may do, and when that ends. Only a hash of the secret is kept.
CREATE TABLE windlass.token (
  id text PRIMARY KEY,
  name text,
  hash bytea NOT NULL,
  scopes text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint
);
