"""Quality gate of a run: Great Expectations suites judge the figures and result rows of a batch before its commit. A
failed critical check stops the run; a warning is reported. The suites are JSON files in `suites` (in the repository:
`expectations/`).

Judging:

    check.py            entry point: judging of a batch before its commit
    judge.py            process that judges batches
    verdict.py          outcome of the suites for a batch
    terms.py            values of a definition that the suites need
    pipeline_suites.py  all suites of a pipeline, with the short tests of its definition
    suite_files.py      suites in files, with their placeholders replaced
    offending.py        rows that a row check rejects

Figures:

    figures.py          figures that the suites judge, and their bounds
    figure_words.py     phrase for each figure
    number_words.py     numbers in words, shares in percent
    firings.py          number of windows that a batch fired
    bands.py            expected range of a figure, derived from its history
    baselines.py        expected ranges for this hour of the week

Great Expectations:

    frames.py           rows as a pandas frame with exact numbers
    configurations.py   expectation configurations, built once per batch
    lazy_imports.py     late imports of packages that few expectations use

Outcomes:

    validations.py      outcome of each batch's checks, as JSON files
    stores.py           outcomes as a Great Expectations project
"""
