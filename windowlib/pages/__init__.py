"""Pages about pipelines: what is to be seen (facts, plain dataclasses), and how (templates). They change no table.

Every look is bounded: the newest batches and rows, found by the statistics of files. So the pages of a pipeline with
thousands of batches cost what those of a young one do.
"""
