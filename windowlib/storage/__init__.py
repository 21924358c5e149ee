"""Bytes at names below a URL. Every other folder reads and writes stored data through `Store`.

store.py         the Protocol `Store`
disk.py          `Disk`: a folder of this machine, or of a shared disk
disk_folders.py  folders above a file, and empty folders
disk_scan.py     folders of other programs: walks, links and permissions
object_file.py   an object as a file that is open for reading
at_once.py       several requests at once
address.py       a `Store` at an address that is text
refusals.py      errors of a full, read-only or denied disk
"""
