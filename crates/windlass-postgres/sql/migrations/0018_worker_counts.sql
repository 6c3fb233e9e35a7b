-- What a worker has done since it registered, by queue, as every renewal says. A column with a constant default rewrites no row.
ALTER TABLE windlass.worker ADD COLUMN counts text NOT NULL DEFAULT '';
