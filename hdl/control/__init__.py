"""Instruction streams, semaphores and what the host sees of them."""
