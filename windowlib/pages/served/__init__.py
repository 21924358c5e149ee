"""Facts of pages that need a server, inside Airflow: forms, and explained results. Pages as files show commands.

forms.py       forms that set a file aside or start a rerun
search.py      input of the search for results, and what it found
explained.py   events, versions and causes of a result
"""
