"""The examples of the documents, run as they stand there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Start
from servers import Process, python_script

PACKAGE = Path(__file__).parent.parent
DOCUMENTS = {
    PACKAGE / "README.md": ["worker.py", "enqueue.py", "blocking.py"],
    PACKAGE.parent.parent / "docs" / "guides" / "other-languages.md": ["worker.py", "enqueue.py"],
}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_examples_say_what_stands_beside_them(
    start: Start, ended: Callable[[Process], None], tmp_path: Path, document: Path
) -> None:
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```(?:\n\n```text\n(.*?)```)?", document.read_text(), re.DOTALL)
    assert [name for name, _, _ in blocks] == DOCUMENTS[document]
    server = start()
    for name, code, said in blocks:
        folder = tmp_path / name
        folder.mkdir()
        process = python_script(code, folder, WINDLASS_SERVER=server.url)
        ended(process)
        if said:
            assert process.wait() == 0, process.said
            assert process.said == said.rstrip("\n")
