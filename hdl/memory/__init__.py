"""Memories: partial-sum buffer and operand buffers."""
