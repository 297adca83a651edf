"""What the vector engine's control tells the lanes, and what an instruction comes down to."""

from amaranth.lib import data

from spec.isa import DIMENSIONS
from spec.memory import PARTITION_BITS
from spec.vector import SHUFFLE_GROUP

from ..memory.local_access import SIZE_BITS
from ..memory.odometer import walk_layout
from .alu import OPERATOR_BITS

__all__ = ["FORMAT_BITS", "PARTIALS", "join_layout", "operand_layout", "scalar_layout", "setting_layout",
           "task_layout", "token_layout"]

FORMAT_BITS = 4
PARTIALS = 8
"""Running results of a reduction (N8)."""

setting_layout = data.StructLayout({
    "raw": 1, "op0": OPERATOR_BITS, "op1": OPERATOR_BITS, "reverse0": 1, "reverse1": 1,
    "format0": FORMAT_BITS, "format1": FORMAT_BITS, "size0": SIZE_BITS, "size1": SIZE_BITS,
    "operand_in_0": 1, "operand_in_1": 1, "scans": 1, "cumulates": 1, "reduces": 1, "reduces_results": 1,
    "selects": 1, "by_predicate": 1, "inverts": 1, "comparison": 3, "affine_data": 1, "ranges": 1, "divides": 1, "sorts": 1,
    "stores": 1, "finds": 1, "replaces": 1, "seeds": 1, "draws": 1, "drops": 1,
    "collects": 1, "spans": 1,
    "fill": 32, "negate": 1})
"""What holds for all elements of an instruction.

``raw``: nothing is converted. ``operand_in_0`` and ``_1``: the second tensor is the second operand of op0, of op1; else
it is scalar0 or scalar1, or as follows. ``scans``, ``cumulates``: it is the result before, of op0, of op1. ``reduces``,
``reduces_results``: op1 reduces the data, or what op0 gives. ``selects``: where what is looked at does not hold, scalar0
takes the place of the data; it is the affine value's ``comparison`` with 0, or with ``by_predicate`` the predicate;
``inverts`` it. ``affine_data``: the affine value is the data. ``ranges``: ``range_select``; ``divides``:
``reciprocal``; ``sorts``: ``max8``. ``stores``: elements become the running results; ``finds``, ``replaces``: ``find_index8`` and
``match_replace8``, whose values are these. ``seeds``: elements start the random numbers anew; ``draws``: these are the data;
``drops``: ``dropout``. ``collects``: elements are kept to leave by other lanes; ``spans``: op0 joins lanes."""

token_layout = data.StructLayout({
    "valid": 1, "byte0": 3, "byte1": 3, "affine": 32, "position": 32, "first": 1, "partial": range(PARTIALS), "half": 1})
"""What is different for each element: bytes of the elements in their words, the shared part of the affine value, the position as
binary32, whether it starts a running result and which, and in which half of the lanes' sixteen."""

join_layout = data.StructLayout({
    "valid": 1, "half": 1, "a": range(PARTIALS), "b": range(PARTIALS), "forward_a": 1, "forward_b": 1, "single": 1, "final": 1})
"""A step in which two running results become one, in the place of the first; ``forward``: that one is what the step before gives.
``single``: there is only the first. ``final``: the result leaves."""

operand_layout = data.StructLayout({
    "used": 1, "psum": 1, "partition": PARTITION_BITS, "format": FORMAT_BITS, "size": SIZE_BITS, "walk": walk_layout})
"""An operand or a result, all of it in range; its elements' size as a power of two of bytes."""

scalar_layout = data.StructLayout({"value": 32, "stored": 1, "partition": PARTITION_BITS})
"""A scalar: its bits, or where its words are."""

task_layout = data.StructLayout({
    "setting": setting_layout, "partitions": PARTITION_BITS + 1, "source0": operand_layout, "source1": operand_layout,
    "result": operand_layout, "reduced": operand_layout, "scalars": data.ArrayLayout(scalar_layout, 2), "axes": 3,
    "discards": 1, "more": 1, "sources": PARTITION_BITS + 1, "shuffles": 1,
    "mask": data.ArrayLayout(8, SHUFFLE_GROUP), "affine": 1, "base": 32, "multiplier": 32, "affine_steps": data.ArrayLayout(32, DIMENSIONS), "start": 32,
    "keeps": 1, "count_special": 1})
"""A legal instruction. ``affine``: it has an affine value. ``keeps``: the result keeps its elements where the predicate does not
hold. ``discards``: nothing is written; ``more``: the next task belongs to the same instruction. ``sources``: partitions of the data, where the result has others;
``shuffles``: results go where ``mask`` says."""
