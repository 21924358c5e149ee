"""Faults planted in the engine, and the checks of a batch that notice them without a test or an oracle.

``python -m tests.world.planted`` plants each of `tests.world.planted.faults` while random pipelines run on Sail, and
says which check noticed. The list was fixed before the first of them was planted.
"""
