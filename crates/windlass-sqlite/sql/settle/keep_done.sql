-- Copies up to 64 tasks that succeeded without an output into the history. Unused parameters are NULL. The
-- writer has compared each fence in memory; here only the primary key can serve the fence. Index: primary
-- key.
INSERT INTO history (
  id, lane, state, priority, ran, started_at, ended_at, lease, attempt, max_attempts, worker, timeout_ms,
  job, workflow, key, progress, error, log, output_encoding, output, encoding, payload
)
SELECT
  id, lane, 5, priority, 1, claimed_at, ?1, lease, attempt, max_attempts, worker, timeout_ms,
  job, workflow, key, progress, NULL, log, NULL, NULL, encoding, payload
FROM task
WHERE id IN (
  ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
  ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34,
  ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50,
  ?51, ?52, ?53, ?54, ?55, ?56, ?57, ?58, ?59, ?60, ?61, ?62, ?63, ?64, ?65, ?66
) AND +state = 2 AND +worker = ?2
