"""The vector engine: lanes, their arithmetic, and what leads elements through them."""
