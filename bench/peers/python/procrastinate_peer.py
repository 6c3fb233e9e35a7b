"""procrastinate. `settings`: `pool` for its connector, `worker` for its worker, `uvloop` for the event loop."""

import asyncio
import json
import logging
import os
import sys
import threading
import time

import procrastinate
import psycopg

PLAN = json.loads(sys.argv[1])
SETTINGS = PLAN["settings"]
URL = os.environ["DATABASE_URL"]

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL, **SETTINGS.get("pool", {})))


def now_ms():
    """Monotonic and the same for every process of the machine."""
    return time.monotonic_ns() / 1e6


def padding(fields):
    """What makes the payload as long as everybody's."""
    return "x" * max(0, PLAN["payload_bytes"] - len(json.dumps({**fields, "pad": ""})))


def answer(**figures):
    """Prints the figures and ends the process: no shutdown of the peer is measured."""
    print(json.dumps(figures), flush=True)
    os._exit(0)


class Tally:
    """What the handlers report to."""

    handled = 0
    latencies_ms = []
    enough = asyncio.Event()


@app.task(name="noop")
async def noop(i=0, t=0, pad=""):
    if t:
        Tally.latencies_ms.append(now_ms() - t)
    Tally.handled += 1
    measured = len(Tally.latencies_ms) if PLAN["command"] == "listen" else Tally.handled
    if measured >= PLAN["tasks"]:
        Tally.enough.set()


async def insert_all():
    for start in range(0, PLAN["tasks"], PLAN["batch"]):
        ids = range(start, min(PLAN["tasks"], start + PLAN["batch"]))
        await noop.batch_defer_async(*[{"i": i, "pad": padding({"i": i})} for i in ids])


def start_worker():
    options = {"install_signal_handlers": False, **SETTINGS.get("worker", {})}
    return asyncio.create_task(app.run_worker_async(**options))


async def prepare():
    await app.schema_manager.apply_schema_async()
    await insert_all()
    answer(tasks=PLAN["tasks"])


async def drain():
    check = await psycopg.AsyncConnection.connect(URL, autocommit=True)
    start = now_ms()
    deadline = start + PLAN["budget_s"] * 1000
    worker = start_worker()
    await asyncio.wait([worker, asyncio.create_task(Tally.enough.wait())],
                       timeout=PLAN["budget_s"], return_when=asyncio.FIRST_COMPLETED)
    if worker.done():
        await worker
    while True:
        asked = now_ms()
        left = (await (await check.execute(PLAN["remaining"])).fetchone())[0]
        if left == 0 or asked >= deadline:
            answer(done=PLAN["tasks"] - left, seconds=(asked - start) / 1000)
        await asyncio.sleep(0.005)


async def listen():
    start_worker()
    # Nothing tells when the worker is ready; the driver's warm-up tasks cover the rest.
    await asyncio.sleep(1)
    print("READY", flush=True)
    await Tally.enough.wait()
    answer(latencies_ms=Tally.latencies_ms)


async def trickle():
    for i in range(PLAN["warm_up"] + PLAN["tasks"]):
        await asyncio.sleep(PLAN["spacing_ms"] / 1000)
        t = 0 if i < PLAN["warm_up"] else now_ms()
        await noop.defer_async(t=t, pad=padding({"t": t}))
    answer(tasks=PLAN["tasks"])


async def callers():
    pad = padding({"i": 0})

    async def call(goes_on):
        done = 0
        while goes_on(done):
            await noop.defer_async(i=0, pad=pad)
            done += 1
        return done

    everybody = range(PLAN["callers"])
    await asyncio.gather(*[call(lambda done: done < PLAN["warm_up"]) for _ in everybody])
    start = now_ms()
    deadline = start + PLAN["budget_s"] * 1000
    tasks = sum(await asyncio.gather(*[call(lambda _: now_ms() < deadline) for _ in everybody]))
    answer(tasks=tasks, warm_up=PLAN["warm_up"] * PLAN["callers"], seconds=(now_ms() - start) / 1000)


async def bulk():
    start = now_ms()
    await insert_all()
    answer(tasks=PLAN["tasks"], seconds=(now_ms() - start) / 1000)


def end_with_the_driver():
    """A closed standard input means that the driver is gone; a listener answers with what it has first."""
    sys.stdin.read()
    if PLAN["command"] == "listen":
        answer(latencies_ms=list(Tally.latencies_ms))
    os._exit(3)


async def main():
    commands = {f.__name__: f for f in (prepare, drain, listen, trickle, callers, bulk)}
    async with app.open_async():
        await commands[PLAN["command"]]()


logging.disable(logging.CRITICAL)
threading.Thread(target=end_with_the_driver, daemon=True).start()
if SETTINGS.get("uvloop"):
    import uvloop

    uvloop.run(main())
else:
    asyncio.run(main())
