"""Random whole pipelines, compared with plain Python after every batch: results, late events, refusals, state."""
