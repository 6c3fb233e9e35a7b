"""Puts the peers into a cache folder outside the tree, at the versions that the files beside this folder pin."""

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

from .processes import Failed, run

SOURCES = Path(__file__).resolve().parent.parent
# A release build of the peers in Rust takes minutes on two cores.
LIMIT_S = 1800


def cache_folder():
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windlass-peers"


def install(ecosystem, say):
    """Installs one ecosystem; answers the words that start a program of it, given the program's name."""
    folder = cache_folder() / ecosystem
    folder.mkdir(parents=True, exist_ok=True)
    # What somebody has built beside the sources stays there.
    built = shutil.ignore_patterns("target", "node_modules", "environment", "__pycache__")
    shutil.copytree(SOURCES / ecosystem, folder, ignore=built, dirs_exist_ok=True)
    return {"node": _node, "rust": _rust, "python": _python}[ecosystem](folder, say)


def version(peer):
    """The version that the files pin."""
    if peer.ecosystem == "node":
        text, pattern = (SOURCES / "node/package.json").read_text(), rf'"{peer.package}": "([^"]+)"'
    elif peer.ecosystem == "rust":
        text, pattern = (SOURCES / "rust/Cargo.toml").read_text(), rf'^{peer.package} = "=([^"]+)"'
    else:
        text, pattern = (SOURCES / "python/requirements.txt").read_text(), rf"^{peer.package}==(\S+)"
    return re.search(pattern, text, re.MULTILINE).group(1)


def _node(folder, say):
    _need("npm", ["nodejs", "npm"], say)
    node = folder / "node_modules/node/bin/node"
    if _is_stale(folder, ["package.json", "package-lock.json"], node):
        say("installing graphile-worker, pg-boss and the Node that runs them (npm)")
        run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, limit_s=LIMIT_S)
        _stamp(folder, ["package.json", "package-lock.json"])
    return lambda program: [str(node), str(folder / program)]


def _rust(folder, say):
    if shutil.which("cargo") is None:
        raise Failed("cargo is missing; install Rust with rustup")
    say("building graphile_worker and apalis (cargo, release; minutes the first time)")
    target = folder / "target"
    run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=folder, limit_s=LIMIT_S,
        env={"CARGO_TARGET_DIR": str(target)})
    return lambda program: [str(target / "release" / program)]


def _python(folder, say):
    environment = folder / "environment"
    if _is_stale(folder, ["requirements.txt"], environment / "bin/python"):
        try:
            import ensurepip  # noqa: F401  Debian ships venv without it
        except ImportError:
            _apt(["python3-venv"], say)
        say("installing procrastinate (pip, in a virtualenv)")
        run([sys.executable, "-m", "venv", "--clear", str(environment)], limit_s=LIMIT_S)
        run([str(environment / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "-r",
             str(folder / "requirements.txt")], limit_s=LIMIT_S)
        _stamp(folder, ["requirements.txt"])
    return lambda program: [str(environment / "bin/python"), str(folder / program)]


def _digest(folder, names):
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()


def _is_stale(folder, names, result):
    stamp = folder / "installed"
    return not (result.exists() and stamp.exists() and stamp.read_text() == _digest(folder, names))


def _stamp(folder, names):
    (folder / "installed").write_text(_digest(folder, names))


def _need(tool, packages, say):
    if shutil.which(tool) is None:
        _apt(packages, say)


def _apt(packages, say):
    """Installs packages of the system, which takes root; says so."""
    names = " ".join(packages)
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") is None or (as_root and shutil.which("sudo") is None):
        raise Failed(f"please install {names}")
    say(f"installing {names} (apt)")
    command = [*as_root, "apt-get", "install", "-y", "-qq", *packages]
    try:
        run(command, limit_s=LIMIT_S, env={"DEBIAN_FRONTEND": "noninteractive"})
    except Failed:
        run([*as_root, "apt-get", "update", "-qq"], limit_s=LIMIT_S)
        run(command, limit_s=LIMIT_S, env={"DEBIAN_FRONTEND": "noninteractive"})
