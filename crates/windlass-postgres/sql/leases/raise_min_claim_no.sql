-- Refuses claims of a worker below a number. $1 worker, $2 number.
UPDATE windlass.worker AS w SET min_claim_no = greatest(w.min_claim_no, $2) WHERE w.id = $1
