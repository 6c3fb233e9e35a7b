// pg-boss. `settings` holds the options of the instance (`boss`), of the queue (`queue`) and of its workers (`work`).
import { PgBoss } from 'pg-boss';
import { answer, inBatches, measureBulk, measureCallers, measureDrain, measureLatency, payload, plan, settings, trickle, url } from './plan.mjs';

const QUEUE = 'noop';
const rows = (from, to) => Array.from({ length: to - from }, (_, k) => ({ data: payload({ i: from + k }) }));

async function boss() {
  const instance = new PgBoss({ connectionString: url, ...settings.boss });
  instance.on('error', (error) => console.error(error));
  await instance.start();
  return instance;
}

const commands = {
  async prepare() {
    const instance = await boss();
    await instance.createQueue(QUEUE, settings.queue ?? {});
    await inBatches((from, to) => instance.insert(QUEUE, rows(from, to)));
    answer({ tasks: plan.tasks });
  },
  async drain() {
    const instance = await boss();
    await measureDrain((handled) => instance.work(QUEUE, settings.work, async (jobs) => handled(jobs.length)));
  },
  async listen() {
    const instance = await boss();
    await measureLatency((started) => instance.work(QUEUE, settings.work, async (jobs) => jobs.forEach((job) => started(job.data))));
  },
  async trickle() {
    const instance = await boss();
    await trickle((fields) => instance.send(QUEUE, fields));
  },
  async callers() {
    const instance = await boss();
    await measureCallers((fields) => instance.send(QUEUE, fields));
  },
  async bulk() {
    const instance = await boss();
    await measureBulk((from, to) => instance.insert(QUEUE, rows(from, to)));
  },
};
await commands[plan.command]();
