"""Runs Windlass and its peers side by side; see ../README.md."""
