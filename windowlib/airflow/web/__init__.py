"""Actions on the pages inside Airflow, with Airflow's permissions. Only the API server needs these modules.

permissions.py   rights of a user, and the origin of a submitted form
questions.py     open questions about a waiting batch or a preview
actions.py       actions that a form requests: set a file aside, start a rerun
"""
