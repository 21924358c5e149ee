"""The quality gate of a run: Great Expectations suites, derived from the definition, judged before any commit.

`check` is the entry; `events`, `state` and `results` each hold the sentences about one group of tables, every sentence
beside its formula and its expectation. A critical one that fails stops the run, a warning is reported.
"""

import os

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # read by Great Expectations when it is imported
