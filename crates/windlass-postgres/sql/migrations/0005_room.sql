-- Every claim writes its tasks anew. With half of each page left free a task stays in its page, which saves the server a lock record and
-- a page for each, and its second entry in the primary key finds room beside the first, with no page to be split and no old entry to be
-- looked for. Holds for pages that are filled from now on.
ALTER TABLE windlass.task SET (fillfactor = 45);
ALTER INDEX windlass.task_pkey SET (fillfactor = 50);
