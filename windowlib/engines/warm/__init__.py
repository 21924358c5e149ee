"""The warm engine: one Spark Connect server on this machine, which runs share instead of starting a JVM each.

`engine` starts, finds and ends it; `keeper` is the process that holds it, and ends it when no client has come for long;
`state` is the file by which they know of it. There is one for each user and installation, and it belongs to no run: it
has a process group of its own, listens on 127.0.0.1 only, and asks for a token that only its user can read.

A run on it is a thin client: it starts no JVM, runs warm code, and imports no Great Expectations. What that saves:
`windowlib.engines`.
"""
