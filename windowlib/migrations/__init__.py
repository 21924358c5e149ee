"""Migration of a pipeline to another definition. Ordinary runs build new tables next to the old tables, and a single
batch switches to them. The switch can be undone until it is finished.

    switch.py       whole migration: build, comparison, switch
    shadow.py       new tables, built next to the old tables
    difference.py   differences of `results` between two definitions
    files.py        table changes of the switch, made from the files of the new tables
    batch.py        the switch as a batch that computes nothing
    undo.py         undoing, finishing or repairing a migration
"""
