"""Runs one Yosys script in a process of its own, so that its log and its crashes stay there: ``yosys_child.py FILE``."""

import sys

from pyosys import libyosys

libyosys.run_pass(f"script {sys.argv[1]}", libyosys.Design())
