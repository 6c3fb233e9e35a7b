// What the peers on Node share: the plan they are given, the clock, the drain's stopwatch, the answer.
import pg from 'pg';

export const plan = JSON.parse(process.argv[2]);
export const url = process.env.DATABASE_URL;
export const settings = plan.settings;

/** Monotonic and the same for every process of the machine. */
export const nowMs = () => Number(process.hrtime.bigint()) / 1e6;
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A closed standard input means that the driver is gone; a listener answers with what it has first.
let onInputEnd = () => process.exit(3);
process.stdin.on('end', () => onInputEnd());
process.stdin.resume();

/** Fields, padded so that the payload is as long as everybody's. */
export function payload(fields) {
  const bare = JSON.stringify({ ...fields, pad: '' }).length;
  return { ...fields, pad: 'x'.repeat(Math.max(0, plan.payload_bytes - bare)) };
}

/** Prints the figures and ends the process: no shutdown of the peer is measured. */
export function answer(figures) {
  process.stdout.write(JSON.stringify(figures) + '\n', () => process.exit(0));
}

/** Calls `insert(from, to)` for the whole backlog, in batches. */
export async function inBatches(insert) {
  for (let from = 0; from < plan.tasks; from += plan.batch) {
    await insert(from, Math.min(plan.tasks, from + plan.batch));
  }
}

/** From the start of the worker until the database says that nothing remains, or the budget is used up. */
export async function measureDrain(startWorker) {
  const check = new pg.Client(url);
  await check.connect();
  let handled = 0;
  let allHandled;
  const ended = new Promise((resolve) => { allHandled = resolve; });
  const from = nowMs();
  const deadline = from + plan.budget_s * 1000;
  await startWorker((tasks) => { if ((handled += tasks) >= plan.tasks) allHandled(); });
  await Promise.race([ended, sleep(deadline - nowMs())]);
  for (;;) {
    const asked = nowMs();
    const left = Number((await check.query(plan.remaining)).rows[0].count);
    if (left === 0 || asked >= deadline) {
      return answer({ done: plan.tasks - left, seconds: (asked - from) / 1000 });
    }
    await sleep(5);
  }
}

/** Collects pickup latencies until all tasks were started or standard input ends. The `t` of a warm-up task is 0. */
export async function measureLatency(startWorker) {
  const latencies = [];
  const finish = () => answer({ latencies_ms: latencies });
  onInputEnd = finish;
  await startWorker((fields) => {
    if (fields.t === 0) return;
    latencies.push(nowMs() - fields.t);
    if (latencies.length === plan.tasks) finish();
  });
  process.stdout.write('READY\n');
}

/** One enqueue at a time, with a pause before each. */
export async function trickle(enqueue) {
  for (let i = 0; i < plan.warm_up + plan.tasks; i++) {
    await sleep(plan.spacing_ms);
    await enqueue(i < plan.warm_up ? payload({ t: 0 }) : payload({ t: nowMs() }));
  }
  answer({ tasks: plan.tasks });
}

/** Concurrent single enqueues for a fixed time, after a few that open the connections. */
export async function measureCallers(enqueue) {
  const each = (call) => Promise.all(Array.from({ length: plan.callers }, call));
  await each(async () => { for (let i = 0; i < plan.warm_up; i++) await enqueue(payload({ i: 0 })); });
  let tasks = 0;
  const from = nowMs();
  const deadline = from + plan.budget_s * 1000;
  await each(async () => { while (nowMs() < deadline) await enqueue(payload({ i: tasks++ })); });
  answer({ tasks, warm_up: plan.warm_up * plan.callers, seconds: (nowMs() - from) / 1000 });
}

/** The whole backlog by the peer's bulk call. */
export async function measureBulk(insert) {
  const from = nowMs();
  await inBatches(insert);
  answer({ tasks: plan.tasks, seconds: (nowMs() - from) / 1000 });
}
