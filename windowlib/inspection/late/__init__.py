"""Looking at late events: which there are, and what another allowance would have kept. No Spark."""
