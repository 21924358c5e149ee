"""What several tests share: pipelines, oracles, strategies, engines, and ways to break things."""
