"""The gallery: `docs/windows.md` and its pictures, in which every assigner meets every trigger.

Nothing in it is drawn by hand. A `Row` holds the TOML that a user would write; `windowlib.replay.scenarios` plays the
same ten elements to it, and the picture shows what came of it.

    python -m docs.gallery          writes docs/windows.md and docs/windows/*.svg
"""
