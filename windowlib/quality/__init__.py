"""The quality gate of a run: its figures and result rows are judged by Great Expectations suites before any commit.

`check` is the entry. A critical check that fails stops the run, a warning is reported. The suites are JSON files in
`suites` (in the repository: `expectations/`), read by `suite_files` and judged by `verdict`.
"""
