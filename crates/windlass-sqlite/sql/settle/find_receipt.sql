-- The last batch of a settler and its answer. Index: primary key.
SELECT batch_no, answer FROM receipt WHERE worker = ?1 AND settler_no = ?2
