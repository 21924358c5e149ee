"""`python -P -m windowlib COMMAND ...`, and the file that spark-submit is given: the command line `windowlib`.

Python puts the folder of a file that it starts first on the path of modules, where its neighbours would hide packages
of the same name: `windowlib/airflow` Airflow, `jobs/run.py` your own `run`. So that folder is removed before anything
else is imported.
"""

import gc
import sys
from pathlib import Path


def start(*command: str) -> None:
    """Runs `windowlib COMMAND` with the arguments of this process, which was started with a file."""
    gc.set_threshold(50_000)  # imports make objects that stay: by default Python looks at them again and again, 0.1 s
    here = Path(sys.argv[0]).resolve().parent
    sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != here]

    from windowlib.cli.main import main

    main(*command, *sys.argv[1:])


if __name__ == "__main__":
    start()
