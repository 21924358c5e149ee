"""Random whole pipelines next to plain Python: what is published, late, refused and in flight after every batch."""
