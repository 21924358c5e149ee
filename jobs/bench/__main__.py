"""`python -m jobs.bench …` is `windowlib bench …`."""

import sys

from jobs.cli import app

app(["bench", *sys.argv[1:]], prog_name="windowlib")
