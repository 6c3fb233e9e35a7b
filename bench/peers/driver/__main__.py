"""scripts/bench-peers: measures, prints, and writes the document."""

import json
import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path

from . import bars, install, report, windlass
from .arguments import arguments, given
from .document import document
from .processes import Failed, run
from .results import Results, Row
from .server import Server, own_url
from .workloads import PeerRun

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs/benchmarks.md"
KEPT = "<!-- kept by scripts/bench-peers from here on -->"
# Where cargo puts what it builds; a relative folder is meant from the root, where cargo is run.
TARGET = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target")
BUILD_LIMIT_S = 1800
# A server with room for every pool, and without checkpoints in the middle of a short run.
SERVER_SETTINGS = ("max_connections=200", "max_wal_size=4GB")


def say(text):
    print(text, file=sys.stderr, flush=True)


def build(package):
    run(["cargo", "build", "--release", "--locked", "--quiet", "--package", package], cwd=ROOT, limit_s=BUILD_LIMIT_S)


def within_a_private_server():
    """Starts this command again with a private server around it; never returns."""
    build("windlass-scratch")
    settings = [word for setting in SERVER_SETTINGS for word in ("--set", setting)]
    command = [str(TARGET / "release/windlass-scratch"), "postgres", *settings, "--",
               sys.executable, "-m", "driver", *sys.argv[1:]]
    os.execv(command[0], command)


def windlass_binary():
    """The release build of the benches, made if need be; WINDLASS_BENCH_BIN names another."""
    given = os.environ.get("WINDLASS_BENCH_BIN")
    if given:
        return given
    say("building windlass-bench (cargo, release)")
    build("windlass-bench")
    return str(TARGET / "release/windlass-bench")


def own_rows(args, server, binary):
    """Windlass with what runs it."""
    for entry in windlass.ENTRIES:
        if args.bars and entry.is_default:
            continue  # no bar is about it
        runner = windlass.WindlassRun(binary, server.url, entry, args.sizes)
        yield Row(entry.name, is_windlass=True), runner, entry.has


def peer_rows(args, server):
    """Peers with what runs them; one that cannot be installed is a row without."""
    starters = {}
    for ecosystem in dict.fromkeys(entry.peer.ecosystem for entry in args.entries):
        try:
            starters[ecosystem] = install.install(ecosystem, say)
        except Failed as failure:
            say(f"{ecosystem}: not installed: {failure}")
            starters[ecosystem] = failure
    for entry in args.entries:
        row, starter = Row(entry.name, is_windlass=False), starters[entry.peer.ecosystem]
        takes_part = bars.contest(entry.name) if args.bars else entry.has
        if isinstance(starter, Failed):
            row.failures = {workload: f"not installed: {starter}" for workload in filter(takes_part, args.workloads)}
            yield row, None, takes_part
        else:
            yield row, PeerRun(server, entry, starter(entry.peer.program), args.sizes), takes_part


def measure(args, contestants):
    """Every workload in every round, each round starting with another contestant."""
    for number in range(args.rounds):
        turn = number % len(contestants)
        for workload in args.workloads:
            for row, runner, takes_part in contestants[turn:] + contestants[:turn]:
                if not takes_part(workload) or workload in row.failures:
                    continue
                try:
                    figures = runner.figures(workload)
                    said = "  ".join(f"{k} {report.figure(v)}" for k, v in figures.items() if k != "note")
                    row.add(figures)
                except Failed as failure:
                    row.failures[workload] = str(failure)
                    said = f"failed: {failure}"
                say(f"round {number + 1}  {workload:8} {row.name:32} {said}")


def facts(args, server, binary):
    """What has to be known about a run beside its figures."""
    return {
        "command": " ".join(["scripts/bench-peers", *given(args)]),
        "workloads": args.workloads,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "rounds": args.rounds,
        "sizes": asdict(args.sizes),
        "machine": report.machine(),
        "server": server.facts(),
        "windlass": run([binary, "--version"]).split()[1] if binary else "not run",
        "peers": [{"name": peer.name, "version": install.version(peer), "keeps": peer.keeps, "settings": peer.settings}
                  for peer in dict.fromkeys(entry.peer for entry in args.entries)],
    }


def show(results, answer):
    """What people read."""
    print(report.plain(report.table(results)))
    if answer["windlass"] != "not run":
        print("\nIn parentheses: Windlass ÷ this row; drain: history kept / history off / default.")
    print("\n" + report.plain(report.best_table(results)))
    print("\n".join(["", *report.notes(results)]))


def kept(target):
    """What stands in the document below its mark: figures of other benches, which a run of this one leaves alone."""
    text = target.read_text() if target.exists() else ""
    return text[text.index(KEPT):] if KEPT in text else ""


def write(answer, target):
    """Writes the document; that of the tree only from a whole run in which nobody failed."""
    results = Results.from_json(answer["rows"])
    if target is None:
        if not answer["is_whole"]:
            return False
        if results.failed():
            say(f"{DOCUMENT.relative_to(ROOT)} stays as it is: {results.failed()[0]}")
            return False
        target = DOCUMENT
    Path(target).write_text(document(results, answer) + kept(Path(target)))
    say(f"wrote {os.path.relpath(target)}")
    return True


def from_file(args):
    """The document once more, without measuring."""
    try:
        answer = json.loads(Path(args.source).read_text())
    except (OSError, ValueError) as error:
        raise Failed(f"{args.source}: {error}") from error
    if not write(answer, args.write):
        raise Failed(f"{args.source} is no whole run; --write FILE writes it elsewhere")
    return 0


def main():
    # A terminated driver ends its programs as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    args = arguments()
    if args.source:
        return from_file(args)
    url = args.store_url or own_url()
    if url is None:
        within_a_private_server()
    server = Server(url)
    schemas = sorted({schema for entry in args.entries for schema in entry.peer.schemas})
    server.refuse_undurable()
    server.refuse_foreign(schemas)
    binary = None if args.skip_windlass else windlass_binary()
    contestants = [*(own_rows(args, server, binary) if binary else []), *peer_rows(args, server)]
    answer = facts(args, server, binary)
    try:
        measure(args, contestants)
    finally:
        server.clean(schemas)
    results = Results([row for row, _, _ in contestants])
    answer |= {"is_whole": args.is_whole, "rows": results.as_json()}
    judged = bars.Judge(results, given(args)).bars(args.workloads) if args.bars else []
    if args.json:
        print(json.dumps(answer | ({"bars": bars.as_json(judged)} if args.bars else {}), indent=1))
    elif args.bars:
        print("\n".join(bar.line() for bar in judged))
    else:
        show(results, answer)
    write(answer, args.write)
    is_short = any(not bar.ok for bar in judged)
    return 1 if is_short or not any(row.rounds for row in results.rows) else 0


try:
    sys.exit(main())
except Failed as failure:
    say(f"error: {failure}")
    sys.exit(2)
except KeyboardInterrupt:
    say("interrupted")
    sys.exit(130)
