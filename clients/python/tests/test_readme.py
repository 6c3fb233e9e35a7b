"""The examples of the README, run as they stand there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from conftest import Start
from servers import Process, python_script

README = Path(__file__).parent.parent / "README.md"


def test_the_examples_of_the_readme_say_what_stands_beside_them(
    start: Start, ended: Callable[[Process], None], tmp_path: Path
) -> None:
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```(?:\n\n```text\n(.*?)```)?", README.read_text(), re.DOTALL)
    assert [name for name, _, _ in blocks] == ["worker.py", "enqueue.py", "blocking.py"]
    server = start()
    for name, code, said in blocks:
        folder = tmp_path / name
        folder.mkdir()
        process = python_script(code, folder, WINDLASS_SERVER=server.url)
        ended(process)
        if said:
            assert process.wait() == 0, process.said
            assert process.said == said.rstrip("\n")
