-- The caller that registered a worker through a server: no other caller may act for that worker.
ALTER TABLE worker ADD COLUMN owner TEXT;
-- What a token is bound to, with its scopes. Programs that do not know this column read "bound" as its scope,
-- which allows nothing.
ALTER TABLE token ADD COLUMN bound TEXT;
