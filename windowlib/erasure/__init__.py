"""A key erased: from every table, from what lies next to them, and from what is ever read again.

tables        the rows of the key in the tables that batches publish, and what one commit of each does
texts         where a value of the key may stand in words: examples of checks, pages, tracebacks
outside       what no batch publishes: dry runs, verifications, notices, the ledger's reasons, files
source        what the source still holds of the key
certificates  how far each erasure has come
forget        all of that, in one batch
"""
