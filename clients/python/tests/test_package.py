"""The package itself: generated code, types, what it ships, what it depends on."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from servers import LIMIT

from windlass import calls
from windlass.calls import Call
from windlass.v1 import control_pb2, store_pb2, tasks_pb2, workers_pb2
from windlass.version import VERSION

HERE = Path(__file__).parent.parent


def test_the_messages_are_those_of_the_proto(tmp_path: Path) -> None:
    (tmp_path / "windlass").mkdir()
    subprocess.run(
        [HERE / "generate", tmp_path], env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}, check=True, timeout=LIMIT
    )
    fresh = {path.name: path.read_text() for path in (tmp_path / "windlass" / "v1").iterdir()}
    kept = {
        path.name: path.read_text()
        for path in (HERE / "src" / "windlass" / "v1").glob("*_pb2.*")
        if path.suffix in (".py", ".pyi")
    }
    stale = sorted(name for name in fresh.keys() | kept.keys() if fresh.get(name) != kept.get(name))
    assert not stale, f"run clients/python/generate: {stale} are not what the proto says"


def test_every_call_is_one_of_the_proto_with_its_messages() -> None:
    services = {
        name: service
        for module in (control_pb2, store_pb2, tasks_pb2, workers_pb2)
        for name, service in module.DESCRIPTOR.services_by_name.items()
    }
    made = [value for value in vars(calls).values() if isinstance(value, Call)]
    assert len(made) > 8
    for call in made:
        method = services[call.service].methods_by_name[call.method]
        assert method.input_type.full_name == call.request.DESCRIPTOR.full_name, call
        assert method.output_type.full_name == call.answer.DESCRIPTOR.full_name, call


def test_package_and_tests_are_typed() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", "/dev/null"], cwd=HERE, capture_output=True, text=True, timeout=300
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_is_installed_is_typed_and_needs_grpcio_and_protobuf_only() -> None:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())
    needed = [line.split(">")[0] for line in project["project"]["dependencies"]]
    assert needed == ["grpcio", "protobuf"]
    assert (HERE / "src" / "windlass" / "py.typed").exists()
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["windlass"]


def test_the_wheel_holds_types_and_messages(tmp_path: Path) -> None:
    # A copy: building leaves folders behind.
    shutil.copytree(HERE, tmp_path / "python", ignore=shutil.ignore_patterns("tests", "*.egg-info", "build"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-input", "--disable-pip-version-check"]
    build += ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(tmp_path), str(tmp_path / "python")]
    subprocess.run(build, check=True, timeout=LIMIT)
    names = set(zipfile.ZipFile(next(tmp_path.glob("windlass-*.whl"))).namelist())
    assert {"windlass/py.typed", "windlass/v1/task_pb2.py", "windlass/v1/task_pb2.pyi"} <= names
    assert "windlass/worker/worker.py" in names
    assert not any("test" in name for name in names)


def test_package_and_program_have_the_same_version() -> None:
    workspace = tomllib.loads((HERE.parent.parent / "Cargo.toml").read_text())
    assert workspace["workspace"]["package"]["version"] == VERSION


def test_every_file_holds_one_idea() -> None:
    own = [path for path in HERE.rglob("*.py") if "_pb2" not in path.name and "tests" not in path.parts]
    assert len(own) > 10
    long = [path.name for path in own if len(path.read_text().splitlines()) > 400]
    assert not long, f"over 400 lines: {long}"
