"""What hardware and golden model agree on: configurations, number formats, operations. Plain data and pure functions."""
