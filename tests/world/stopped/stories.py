"""Pipelines with a longer life than a run: few events, and many actions of operators and authors.

Each is stopped where something waits: a batch that is prepared, one that its checks refuse, files that are unread.
"""

from __future__ import annotations

from tests.world.stopped.stage import COUNTS, WITH_IDS, Case, Stage

TOML = WITH_IDS.replace('"stopped"', '"stopped"\nlease_timeout = "1s"') + COUNTS
SORTED = TOML.replace("max_files", 'sorted_by_time = "names"\nmax_files') + '[retention]\ncuts = "1 batch"\n'
JUDGED = TOML + '[checks]\nfigures_suite = "few.json"\n[notify]\nwebhook = "http://127.0.0.1:9/none"\n'
BY = ("--who", "ann")
BATCHES = 10
MOST = 4  # rows of a batch, else its checks refuse it
SET_ASIDE, LATE_NAME, LAST = "11", "00", "14"
ERASED = "u1"


def _prepared(stage: Stage) -> None:
    """Ten batches with a file set aside, a changed lateness, compaction, an erased key and shortened logs; then a
    prepared batch.

    Of the unread ones the first comes before the marker. The other has two events: one whose window was late before
    the lateness rose, and stays so, and one that the new lateness keeps.
    """
    for n in range(1, BATCHES + 1):
        more = {4: ("in time", "u1", 100), 6: ("late", "u2", 5), 7: ("no key", None, 200), 8: ("n7", "u1", 210)}.get(n)
        stage.arrive(f"{n:02}", (f"n{n}", f"u{n % 3}", 30 * n), *([more] if more else []))
    stage.call("run")
    stage.arrive_cut_off(SET_ASIDE, 330)
    stage.call("run", ends_with=2)
    stage.call("set-aside", SET_ASIDE + ".parquet", "--reason", "cut off", *BY)
    stage.edit('"1h"', '"3h"')
    stage.arrive("12", ("n12", "u0", 360))
    stage.call("run")
    stage.call("acknowledge", "silence", "--until", "3650d", "--reason", "closed", *BY)
    stage.call("verify")
    stage.call("maintain", *BY)
    stage.call("forget", "--key", ERASED, "--now", "--reason", "request 7", "--yes", *BY)
    stage.arrive("13", ("n13", "u1", 390), ("n13b", "u0", 365))
    stage.run_killed_when_prepared()
    stage.arrive(LATE_NAME, ("late name", "u4", 400))
    stage.arrive(LAST, ("n14", "u2", 420), ("erased", ERASED, 421), ("stays late", "u3", 200), ("is kept", "u3", 250))


def _waiting(stage: Stage) -> None:
    """A migration that can be undone, a dry run that can be applied; then a batch is refused, and waits."""
    stage.arrive("1", ("a1", "u1", 15), ("b1", "u2", 60))
    stage.arrive("2", ("a2", "u1", 30), ("b2", "u2", 180))
    stage.call("run")
    stage.edit('"10m"', '"25m"')
    stage.call("migrate", "--reason", "cut too early", "--yes", *BY)
    stage.arrive("3", ("a3", "u2", 240), ("late", "u1", 70))
    stage.call("run")
    stage.call(
        "rerun", "--from", "2026-03-02T00:00Z", "--to", "2026-03-02T01:30Z", "--reason", "late", "--dry-run", *BY
    )
    stage.arrive("4", *((f"many {n}", "u2", 250 + n) for n in range(MOST + 1)))
    stage.call("run", ends_with=3)
    stage.arrive("5", ("a5", "u1", 300))


def _kept(stage: Stage) -> None:
    """A migration that is kept for good, a key that is erased, old files still there; then a run fails."""
    stage.arrive("1", ("a1", ERASED, 15), ("b1", "u2", 60))
    stage.arrive("2", ("a2", ERASED, 30), ("b2", "u2", 180))
    stage.call("run")
    stage.edit('"10m"', '"25m"')
    stage.call("migrate", "--reason", "cut too early", "--yes", *BY)
    stage.call("migrate", "--reason", "it is right", "--finish", *BY)
    stage.arrive("3", ("a3", ERASED, 200), ("b3", "u2", 195), ("late", "u2", 70))
    stage.call("run")
    stage.call("forget", "--key", ERASED, "--reason", "request 7", "--yes", *BY)
    broken = stage.arrive_cut_off("4", 205)
    stage.call("run", ends_with=2)
    broken.unlink()
    stage.arrive("4", ("a4", ERASED, 205), ("b4", "u2", 210), ("c4", "u3", 215))


STORIES = {
    "prepared": Case(SORTED, story=_prepared, rerun=("02:30", "04:20"), erases=True),
    "waiting": Case(JUDGED, most_rows=MOST, story=_waiting, waits=True, rerun=("00:50", "04:00")),
    "kept": Case(TOML, story=_kept, rerun=("00:50", "03:30"), erases=True),
}
