-- Every claim writes its tasks anew and so gives each a second entry in this index, next to its first. With half of each page left free
-- that needs no page to be split and no old entry to be looked for. Holds for pages that are filled from now on.
ALTER INDEX windlass.task_pkey SET (fillfactor = 50);
