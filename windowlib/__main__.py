"""Entry point of the command line, for `python -P -m windowlib COMMAND ...` and spark-submit.

Python puts the folder of the started script first on the module path. Files in that folder would hide packages of the
same name: `windowlib/airflow` hides Airflow, and `jobs/run.py` hides your own `run`. So this module removes the folder
from the path before it imports anything else.
"""

import gc
import sys
from pathlib import Path


def start(*command: str) -> None:
    """Runs `windowlib COMMAND` with the arguments of this process."""
    gc.set_threshold(50_000)  # saves 0.1 s: by default Python checks the lasting objects of the imports repeatedly
    here = Path(sys.argv[0]).resolve().parent
    sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != here]

    from windowlib.cli.main import main

    main(*command, *sys.argv[1:])


if __name__ == "__main__":
    start()
