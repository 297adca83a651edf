"""The hardware, in Amaranth."""
