"""The same proto works with grpcio's own generated stubs, without our package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from servers import LIMIT, Server, clean_environment

HERE = Path(__file__).parent
PROTO = HERE.parent.parent.parent / "proto"
SERVICES = [f"windlass.v1.{name}" for name in ("Control", "Store", "Tasks", "Workers")]


@pytest.fixture(scope="module")
def said(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the stock tools saw of a server."""
    stubs = tmp_path_factory.mktemp("stubs")
    protos = sorted(path.relative_to(PROTO) for path in PROTO.rglob("*.proto"))
    generate = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={stubs}", f"--grpc_python_out={stubs}"]
    subprocess.run([*generate, *map(str, protos)], cwd=PROTO, check=True, timeout=LIMIT)
    speak = [sys.executable, str(HERE / "stock" / "speak.py"), server.listen, "--stream"]
    environment = clean_environment(PYTHONPATH=str(stubs))
    ended = subprocess.run(speak, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert ended.returncode == 0, ended.stderr
    seen: dict[str, Any] = json.loads(ended.stdout)
    return seen


def test_a_task_is_enqueued_claimed_and_completed(said: dict[str, Any]) -> None:
    calls = said["calls"]
    assert calls == {
        "same": True,
        "payload": '{"n":1}',
        "memory": 0.5,
        "progress": "half",
        "states": ["TASK_STATE_DONE", "TASK_STATE_DONE"],
        "output": '"ok"',
    }


def test_a_task_comes_over_the_stream_and_is_completed_there(said: dict[str, Any]) -> None:
    kinds = said["stream"]["kinds"]
    assert (kinds[0], kinds[-1]) == ("welcome", "end") and "tasks" in kinds
    assert said["stream"]["state"] == "TASK_STATE_DONE"


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_tells_of_every_service_and_its_files(said: dict[str, Any], version: str) -> None:
    assert set(SERVICES) <= set(said[version]["services"])
    assert "windlass/v1/workers.proto" in said[version]["files"]


def test_grpcio_reflection_finds_the_services(said: dict[str, Any]) -> None:
    assert set(SERVICES) <= set(said["database"])


def test_the_standard_health_service_answers(said: dict[str, Any]) -> None:
    assert said["health"] == "SERVING"
