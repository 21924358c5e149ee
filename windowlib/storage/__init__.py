"""Bytes at names below a URL. Every other folder reads and writes stored data through `Store`.

store.py    the Protocol `Store`
disk.py     `Disk`: a folder of this machine, or of a shared disk
at_once.py  several requests at once
"""
