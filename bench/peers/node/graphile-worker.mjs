// graphile-worker. `settings` are the options of its worker preset, as its documentation names them.
import { Logger, WorkerPreset, makeWorkerUtils, run } from 'graphile-worker';
import { answer, inBatches, measureBulk, measureCallers, measureDrain, measureLatency, payload, plan, settings, trickle, url } from './plan.mjs';

const logger = new Logger(() => () => {});
const preset = { extends: [WorkerPreset], worker: { connectionString: url, logger, ...settings } };
const utils = () => makeWorkerUtils({ preset });
const jobs = (from, to) => Array.from({ length: to - from }, (_, k) => ({ identifier: 'noop', payload: payload({ i: from + k }) }));

const commands = {
  async prepare() {
    const producer = await utils();
    await producer.migrate();
    await inBatches((from, to) => producer.addJobs(jobs(from, to)));
    answer({ tasks: plan.tasks });
  },
  drain: () => measureDrain((handled) => run({ preset, taskList: { noop: async () => handled(1) } })),
  listen: () => measureLatency((started) => run({ preset, taskList: { noop: async (fields) => started(fields) } })),
  async trickle() {
    const producer = await utils();
    await trickle((fields) => producer.addJob('noop', fields));
  },
  async callers() {
    const producer = await utils();
    await measureCallers((fields) => producer.addJob('noop', fields));
  },
  async bulk() {
    const producer = await utils();
    await measureBulk((from, to) => producer.addJobs(jobs(from, to)));
  },
};
await commands[plan.command]();
