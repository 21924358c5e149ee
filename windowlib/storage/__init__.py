"""Bytes at names below a URL. Every other folder reads and writes stored data through `Store`.

store.py           the Protocol `Store`
disk.py            `Disk`: a folder of this machine, or of a shared disk
disk_folders.py    folders above a file, and empty folders
disk_scan.py       folders of other programs: walks, links and permissions
objects.py         `Objects`: a folder of a bucket on S3, Azure or Google Cloud
object_listing.py  listings of an object store, and names that all stores can hold
repeats.py         requests to an object store, repeated for a while
answers.py         answers of object stores that are no success, as one sentence each
bucket.py          addresses of buckets and containers
credentials.py     credentials of object stores, and their renewal
handover.py        credentials that a process passes to its child processes
clients.py         clients of object stores, one for each process
arrow_files.py     Arrow's own file systems of object stores
probe.py           a test that one of several writers succeeds
object_file.py     an object as a file that is open for reading
at_once.py         several requests at once
address.py         a `Store` at an address that is text
refusals.py        errors of a full, read-only or denied disk
"""
