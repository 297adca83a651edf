"""Floating-point and integer arithmetic blocks."""
