"""The numpy model: what every block computes, to the bit."""
