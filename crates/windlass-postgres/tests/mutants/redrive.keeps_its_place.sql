-- Broken: a redriven step that was skipped goes before the waiting steps. Breaks WF-ORDER. Noticed by workflow_states::a_redriven_step_that_was_passed_goes_to_the_end
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), back AS (
  UPDATE windlass.task AS t
  SET
    state = CASE WHEN u.is_append THEN 4 ELSE 0 END,
    step = t.step,
    ready_seq = CASE WHEN u.is_append THEN nextval('windlass.seq') END,
    due_at = (SELECT now FROM clock) + u.delay_ms, ended_at = NULL, attempt = 0, crashes = 0,
    log = windlass.logged(t.log, jsonb_build_array(t.attempt, t.lease, NULL, NULL, (SELECT now FROM clock), 7, NULL))
  FROM unnest($1::bigint[], $2::bigint[], $3::boolean[]) AS u (id, delay_ms, is_append)
  WHERE t.id = ANY (ARRAY[u.id]) AND t.state + 0 = 6
  RETURNING t.id, t.due_at, t.state, t.job
), todo AS (
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 0::smallint, back.job FROM back WHERE back.job IS NOT NULL
)
SELECT back.id, back.due_at, back.state FROM back
