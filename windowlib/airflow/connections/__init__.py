"""Credentials of object stores from Airflow's connections.

access.py  pipelines, tasks and commands that are given the credentials of a connection
fields.py  fields of connections as settings and credentials
"""
