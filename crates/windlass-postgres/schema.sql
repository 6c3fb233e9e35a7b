FUNCTION added_to_job(job text, concurrency integer) RETURNS boolean LANGUAGE plpgsql VOLATILE
UNLOGGED TABLE arrival WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000)
  task bigint NOT NULL
  lane integer
  is_ready boolean NOT NULL
  queue text NOT NULL
  kind text NOT NULL
  CONSTRAINT arrive TRIGGER DEFERRABLE INITIALLY DEFERRED
FUNCTION arrive() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path=pg_catalog, pg_temp, enable_seqscan=off, jit=off
UNLOGGED TABLE awaited
  task bigint NOT NULL
  until bigint NOT NULL
  CONSTRAINT awaited_pkey PRIMARY KEY (task)
  CREATE UNIQUE INDEX awaited_pkey ON awaited USING btree (task)
FUNCTION began_ms() RETURNS bigint LANGUAGE sql STABLE
TABLE call
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
  at bigint NOT NULL
  who text NOT NULL
  call text NOT NULL
  about text NOT NULL
  result text NOT NULL
  CONSTRAINT call_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX call_pkey ON call USING btree (id)
SEQUENCE call_id_seq
FUNCTION check_json(json_text text) RETURNS void LANGUAGE plpgsql IMMUTABLE
FUNCTION check_name(what text, name text) RETURNS void LANGUAGE plpgsql IMMUTABLE
TABLE depth
  lane integer NOT NULL
  state smallint NOT NULL
  n bigint NOT NULL
  counted_at bigint NOT NULL
  CONSTRAINT depth_pkey PRIMARY KEY (lane, state)
  CREATE UNIQUE INDEX depth_pkey ON depth USING btree (lane, state)
FUNCTION digest(kind text, encoding smallint, payload bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
UNLOGGED TABLE doorbell WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000)
  listener bigint NOT NULL
  armed_until bigint NOT NULL
  lanes integer[] NOT NULL
  worker bigint
  claim_no bigint
  offered integer[]
  whisper text
  presence bigint
  CONSTRAINT doorbell_pkey PRIMARY KEY (listener)
  CREATE UNIQUE INDEX doorbell_pkey ON doorbell USING btree (listener)
FUNCTION enqueue(kind text, payload json DEFAULT 'null'::json, queue text DEFAULT NULL::text, job text DEFAULT NULL::text, workflow text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, key text DEFAULT NULL::text, max_attempts integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval, ignore_conflict boolean DEFAULT NULL::boolean, on_failure text DEFAULT NULL::text, ignore_key_conflict boolean DEFAULT NULL::boolean, job_concurrency integer DEFAULT NULL::integer, OUT id text, OUT existing boolean) RETURNS record LANGUAGE sql VOLATILE
FUNCTION enqueue_task(new_kind text, new_encoding smallint, new_payload bytea, new_queue text, new_job text, new_workflow text, new_priority integer, new_due_at bigint, new_delay_ms bigint, new_key text, ignore_conflict boolean, new_max_attempts integer, new_timeout_ms bigint, new_retry text, new_on_failure smallint, OUT task bigint, OUT existing boolean) RETURNS record LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path=pg_catalog, pg_temp, enable_seqscan=off, jit=off
TABLE fenced
  worker bigint NOT NULL
  settler_no integer NOT NULL
  batch_no bigint NOT NULL
  task bigint NOT NULL
  CONSTRAINT fenced_pkey PRIMARY KEY (worker, settler_no, batch_no, task)
  CREATE UNIQUE INDEX fenced_pkey ON fenced USING btree (worker, settler_no, batch_no, task)
TABLE freed WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000)
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
  jobs text[] NOT NULL
  places bigint[] NOT NULL
  CONSTRAINT freed_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX freed_pkey ON freed USING btree (id)
SEQUENCE freed_id_seq
TABLE gate_todo WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000)
  at bigint NOT NULL DEFAULT 0
  kind smallint NOT NULL
  key text NOT NULL
  concurrency integer
  CREATE INDEX gate_todo_at ON gate_todo USING btree (at)
  CREATE INDEX gate_todo_key ON gate_todo USING btree (key, kind) WHERE ((kind > 1) OR (at > 0))
TABLE history PARTITION BY RANGE (ended_at)
  id bigint NOT NULL
  started_at bigint
  ended_at bigint NOT NULL
  worker bigint
  timeout_ms bigint
  lane integer NOT NULL
  priority integer NOT NULL
  lease integer NOT NULL
  attempt integer NOT NULL
  max_attempts integer NOT NULL
  state smallint NOT NULL
  encoding smallint NOT NULL
  output_encoding smallint
  ran boolean NOT NULL
  job text
  workflow text
  key text
  progress text
  error text
  log jsonb
  output bytea
  payload bytea NOT NULL
  CREATE INDEX history_id ON ONLY history USING btree (id)
TABLE history_rest DEFAULT
  id bigint NOT NULL
  started_at bigint
  ended_at bigint NOT NULL
  worker bigint
  timeout_ms bigint
  lane integer NOT NULL
  priority integer NOT NULL
  lease integer NOT NULL
  attempt integer NOT NULL
  max_attempts integer NOT NULL
  state smallint NOT NULL
  encoding smallint NOT NULL
  output_encoding smallint
  ran boolean NOT NULL
  job text
  workflow text
  key text
  progress text
  error text
  log jsonb
  output bytea
  payload bytea NOT NULL
  CREATE INDEX history_rest_id_idx ON history_rest USING btree (id)
FUNCTION id_text(id bigint) RETURNS text LANGUAGE sql IMMUTABLE
FUNCTION is_live(lane_queue text, lane_kind text) RETURNS boolean LANGUAGE sql STABLE
TABLE job WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000)
  name text NOT NULL
  created_at bigint NOT NULL
  delay_ms bigint
  last_start bigint
  gone_before bigint
  concurrency integer
  state smallint NOT NULL
  recount boolean NOT NULL
  at_limit boolean NOT NULL
  CONSTRAINT job_pkey PRIMARY KEY (name)
  CREATE UNIQUE INDEX job_pkey ON job USING btree (name)
TABLE key
  queue text NOT NULL
  key text NOT NULL
  task bigint NOT NULL
  digest bytea NOT NULL
  expires_at bigint
  CONSTRAINT key_pkey PRIMARY KEY (queue, key)
  CREATE INDEX key_expires ON key USING btree (expires_at) WHERE (expires_at IS NOT NULL)
  CREATE UNIQUE INDEX key_pkey ON key USING btree (queue, key)
TABLE lane
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY
  queue text NOT NULL
  kind text NOT NULL
  idle_since bigint
  retired boolean NOT NULL DEFAULT false
  CONSTRAINT lane_pkey PRIMARY KEY (id)
  CONSTRAINT lane_queue_kind_key UNIQUE (queue, kind)
  CREATE INDEX lane_idle ON lane USING btree (id) WHERE (idle_since IS NOT NULL)
  CREATE INDEX lane_in_use ON lane USING btree (id) WHERE (NOT retired)
  CREATE UNIQUE INDEX lane_pkey ON lane USING btree (id)
  CREATE UNIQUE INDEX lane_queue_kind_key ON lane USING btree (queue, kind)
SEQUENCE lane_id_seq
TABLE leader WITH (fillfactor=50)
  id smallint NOT NULL
  term bigint NOT NULL
  holder bigint NOT NULL
  expires_at bigint NOT NULL
  CONSTRAINT leader_id_check CHECK ((id = 1))
  CONSTRAINT leader_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX leader_pkey ON leader USING btree (id)
UNLOGGED TABLE lease_epoch
  id integer NOT NULL
  first_lease integer NOT NULL
  CONSTRAINT lease_epoch_id_check CHECK ((id = 1))
  CONSTRAINT lease_epoch_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX lease_epoch_pkey ON lease_epoch USING btree (id)
FUNCTION limit_new_job(job text, concurrency integer) RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path=pg_catalog, pg_temp
FUNCTION logged(log jsonb, entry jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
TABLE meta
  name text NOT NULL
  value bigint NOT NULL
  CONSTRAINT meta_pkey PRIMARY KEY (name)
  CREATE UNIQUE INDEX meta_pkey ON meta USING btree (name)
FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
TABLE part
  from_ms bigint NOT NULL
  until_ms bigint NOT NULL
  name text NOT NULL
  CONSTRAINT part_name_key UNIQUE (name)
  CONSTRAINT part_pkey PRIMARY KEY (from_ms)
  CREATE UNIQUE INDEX part_name_key ON part USING btree (name)
  CREATE UNIQUE INDEX part_pkey ON part USING btree (from_ms)
TABLE paused_queue
  queue text NOT NULL
  paused_at bigint NOT NULL
  CONSTRAINT paused_queue_pkey PRIMARY KEY (queue)
  CREATE UNIQUE INDEX paused_queue_pkey ON paused_queue USING btree (queue)
TABLE receipt WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000)
  worker bigint NOT NULL
  settler_no integer NOT NULL
  batch_no bigint NOT NULL
  CONSTRAINT receipt_pkey PRIMARY KEY (worker, settler_no)
  CREATE UNIQUE INDEX receipt_pkey ON receipt USING btree (worker, settler_no)
TABLE run
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
  version bigint NOT NULL
  running boolean NOT NULL
  started_at bigint NOT NULL
  updated_at bigint NOT NULL
  body text NOT NULL
  CONSTRAINT run_pkey PRIMARY KEY (id)
  CREATE INDEX run_running ON run USING btree (id) WHERE running
  CREATE UNIQUE INDEX run_pkey ON run USING btree (id)
SEQUENCE run_id_seq
TABLE schedule
  name text NOT NULL
  next_at bigint
  last_at bigint
  last_task bigint
  paused boolean NOT NULL
  spec text NOT NULL
  CONSTRAINT schedule_pkey PRIMARY KEY (name)
  CREATE INDEX schedule_next ON schedule USING btree (next_at) WHERE ((NOT paused) AND (next_at IS NOT NULL))
  CREATE UNIQUE INDEX schedule_pkey ON schedule USING btree (name)
SEQUENCE seq
FUNCTION server_started_ms() RETURNS bigint LANGUAGE sql VOLATILE
TABLE session
  id text NOT NULL
  token text NOT NULL
  hash bytea NOT NULL
  created_at bigint NOT NULL
  expires_at bigint NOT NULL
  seen_at bigint NOT NULL
  CONSTRAINT session_pkey PRIMARY KEY (id)
  CREATE INDEX session_expires ON session USING btree (expires_at)
  CREATE INDEX session_token ON session USING btree (token, created_at)
  CREATE UNIQUE INDEX session_pkey ON session USING btree (id)
TABLE task WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=20000, autovacuum_vacuum_insert_scale_factor=0, autovacuum_vacuum_insert_threshold=200000, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=200000, autovacuum_vacuum_cost_delay=0, fillfactor=45)
  id bigint NOT NULL
  ready_seq bigint
  due_at bigint
  claimed_at bigint
  ended_at bigint
  worker bigint
  claim_no bigint
  timeout_ms bigint
  step bigint
  lane integer NOT NULL
  priority integer NOT NULL
  lease integer NOT NULL
  attempt integer NOT NULL
  max_attempts integer NOT NULL
  crashes integer NOT NULL
  state smallint NOT NULL
  encoding smallint NOT NULL
  on_failure smallint
  parked boolean NOT NULL DEFAULT false
  paced boolean
  retry text
  job text
  workflow text
  key text
  cancel text
  progress text
  error text
  log jsonb
  payload bytea NOT NULL
  trace text DEFAULT NULLIF(current_setting('w3c.traceparent'::text, true), ''::text)
  suspect bigint
  aside boolean NOT NULL DEFAULT false
  CONSTRAINT task_pkey PRIMARY KEY (id)
  CREATE INDEX task_cancel ON task USING btree (worker) WHERE ((state = 2) AND (cancel IS NOT NULL))
  CREATE INDEX task_dead ON task USING btree (ended_at, id) WHERE (state = 6)
  CREATE INDEX task_due ON task USING btree (due_at, id) WHERE (state = 0)
  CREATE INDEX task_job ON task USING btree (job, state, parked, priority DESC, id) WHERE ((job IS NOT NULL) AND (state <> 6))
  CREATE INDEX task_parked ON task USING btree (lane) WHERE ((state = 3) AND parked)
  CREATE INDEX task_ready ON task USING btree (lane, priority DESC, ready_seq) WHERE ((state = 1) AND (crashes < 2))
  CREATE INDEX task_running ON task USING btree (worker, claim_no) WHERE (state = 2)
  CREATE INDEX task_running_suspect ON task USING btree (worker) WHERE ((state = 2) AND (crashes > 0))
  CREATE INDEX task_step ON task USING btree (workflow, step, ready_seq) WHERE ((workflow IS NOT NULL) AND (state <> 6))
  CREATE INDEX task_suspect ON task USING btree (lane, priority DESC, ready_seq) WHERE ((state = 1) AND (crashes > 0))
  CREATE INDEX task_suspect_running ON task USING btree (worker) WHERE ((state = 2) AND (crashes >= 2))
  CREATE INDEX task_suspect_waiting ON task USING btree (lane) WHERE ((crashes >= 2) AND ((state = 1) OR ((state = 3) AND aside)))
  CREATE UNIQUE INDEX task_pkey ON task USING btree (id) WITH (fillfactor='50')
FUNCTION task_id(at_ms bigint, seq bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
FUNCTION tell_cancelled(job text) RETURNS void LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path=pg_catalog, pg_temp
TABLE token
  id text NOT NULL
  name text
  hash bytea NOT NULL
  scopes text NOT NULL
  created_at bigint NOT NULL
  expires_at bigint
  bound text
  CONSTRAINT token_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX token_pkey ON token USING btree (id)
FUNCTION wake_lanes(lanes integer[]) RETURNS boolean LANGUAGE plpgsql VOLATILE
TABLE worker WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000)
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
  lease_ttl_ms bigint NOT NULL
  min_claim_no bigint NOT NULL
  registered_at bigint NOT NULL
  renewed_at bigint NOT NULL
  expires_at bigint NOT NULL
  ended_at bigint
  crowd integer
  pid integer NOT NULL
  slots integer NOT NULL
  available integer NOT NULL
  in_flight integer NOT NULL
  draining boolean NOT NULL
  host text NOT NULL
  version text NOT NULL
  kinds text[] NOT NULL
  queues text[] NOT NULL
  memory_usage double precision NOT NULL DEFAULT 0
  factor double precision NOT NULL DEFAULT 1
  reason text NOT NULL DEFAULT ''::text
  owner text
  counts text NOT NULL DEFAULT ''::text
  CONSTRAINT worker_pkey PRIMARY KEY (id)
  CREATE INDEX worker_ended ON worker USING btree (ended_at) WHERE (ended_at IS NOT NULL)
  CREATE INDEX worker_live ON worker USING btree (id) WHERE (ended_at IS NULL)
  CREATE UNIQUE INDEX worker_pkey ON worker USING btree (id)
SEQUENCE worker_id_seq
TABLE workflow WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000)
  name text NOT NULL
  created_at bigint NOT NULL
  blocked_by bigint
  forgiven_step bigint
  on_failure smallint NOT NULL
  CONSTRAINT workflow_pkey PRIMARY KEY (name)
  CREATE INDEX workflow_blocked ON workflow USING btree (name) WHERE (blocked_by IS NOT NULL)
  CREATE UNIQUE INDEX workflow_pkey ON workflow USING btree (name)
