"""What the command line of scripts/bench-peers asks for."""

import argparse
from dataclasses import dataclass

from . import bars
from .contestants import PEERS, Entry
from .workloads import CALLERS, WORKLOADS

# Rounds of which the median counts; fewer are a look.
ROUNDS = 3
EVERY_WORKLOAD = ",".join(WORKLOADS)
BOTH = "fast,default"


@dataclass(frozen=True)
class Sizes:
    """How much of each workload."""

    tasks: int
    latency_tasks: int
    drain_s: int
    callers_s: int
    callers: tuple = CALLERS


FULL = Sizes(tasks=200_000, latency_tasks=1_000, drain_s=30, callers_s=3)
QUICK = Sizes(tasks=20_000, latency_tasks=200, drain_s=8, callers_s=1)


def _parser():
    parser = argparse.ArgumentParser(
        prog="scripts/bench-peers", description="Windlass and its peers on one PostgreSQL, side by side.",
        epilog="Exit codes: 0 measured (a peer that failed is shown as such), 1 nothing could be measured or a figure is "
               "short of its bar, 2 wrong usage or something is missing, 130 Ctrl-C.")
    parser.add_argument("--quick", action="store_true", help="small numbers and one round: a look, not a verdict")
    parser.add_argument("--bars", action="store_true",
                        help="only what the bars need, one row a bar: command, figure, value, bar, OK or SHORT")
    parser.add_argument("--store-url", metavar="URL", help="an empty database; without it a private server is started")
    parser.add_argument("--rounds", type=int, help=f"rounds, of which the median counts ({ROUNDS})")
    parser.add_argument("--tasks", type=int, help=f"tasks of the drain and of the bulk enqueue ({FULL.tasks})")
    parser.add_argument("--peers", metavar="NAMES", help="only peers whose name starts so, comma-separated")
    parser.add_argument("--configurations", default=BOTH, help="fast, default or both")
    parser.add_argument("--only", metavar="WORKLOADS", default=EVERY_WORKLOAD, help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument("--skip-windlass", action="store_true", help="peers only")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", metavar="FILE", help="where the document goes; docs/benchmarks.md after a whole run")
    parser.add_argument("--from", dest="source", metavar="FILE",
                        help="measure nothing: write the document from what --json has printed")
    return parser


def words(text):
    return [word for word in text.split(",") if word]


def default_rounds(args):
    return 1 if args.quick else ROUNDS


def arguments():
    """The arguments, checked, with `workloads`, `entries`, `rounds`, `sizes` and `is_whole` worked out."""
    parser = _parser()
    args = parser.parse_args()
    args.workloads = words(args.only)
    if not args.workloads or not set(args.workloads) <= set(WORKLOADS):
        parser.error(f"--only takes {', '.join(WORKLOADS)}")
    chosen = [peer for peer in PEERS if args.peers is None or peer.name.startswith(tuple(words(args.peers)))]
    configurations = words(args.configurations)
    if not chosen or not configurations or not set(configurations) <= set(words(BOTH)):
        parser.error("no such peer or configuration; peers: " + ", ".join(peer.name for peer in PEERS))
    if any(number is not None and number < 1 for number in (args.rounds, args.tasks)):
        parser.error("--rounds and --tasks must be at least 1")
    is_everybody = args.peers is None and set(configurations) == set(words(BOTH)) and not args.skip_windlass
    if args.bars and (not is_everybody or args.write or args.source):
        parser.error("--bars knows its contestants and writes no document")
    args.entries = [Entry(peer, word) for peer in chosen for word in configurations]
    args.rounds = args.rounds or default_rounds(args)
    sizes = QUICK if args.quick else FULL
    callers = (bars.CALLERS,) if args.bars else CALLERS
    args.sizes = Sizes(args.tasks or sizes.tasks, sizes.latency_tasks, sizes.drain_s, sizes.callers_s, callers)
    if args.bars:
        args.workloads = [workload for workload in args.workloads if workload in bars.CONTESTS]
        args.entries = [entry for entry in args.entries if any(map(bars.contest(entry.name), args.workloads))]
        if not args.workloads:
            parser.error(f"--bars has {', '.join(bars.CONTESTS)}")
    args.is_whole = (is_everybody and not args.bars and not args.quick and args.workloads == list(WORKLOADS)
                     and args.rounds >= ROUNDS and args.sizes.tasks >= FULL.tasks)
    return args


def given(args):
    """The options that decide what is measured, other than which workloads; for the command that the report names."""
    options = ["--quick"] * args.quick + ["--skip-windlass"] * args.skip_windlass
    for name, value, usual in (("--tasks", args.tasks, None), ("--rounds", args.rounds, default_rounds(args)),
                               ("--peers", args.peers, None), ("--configurations", args.configurations, BOTH)):
        options += [name, str(value)] if value != usual else []
    return options
