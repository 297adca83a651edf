"""The components that can be generated, simulated or costed on their own, by the names that a user's ``TOP=`` gives them."""

from spec.errors import SpecError, choices
from spec.isa import STREAMS

from .arith.add import Add
from .arith.int_pair_multiply_add import IntPairMultiplyAdd
from .arith.multiply import Multiply
from .control.semaphores import Semaphores
from .control.sequencer import Sequencer
from .core import NeuronCore
from .dma.engine import DMAEngine
from .memory.psum import PartialSumBuffer, PartialSumColumn
from .memory.state_buffer import StateBuffer
from .tensor.array import SystolicArray
from .tensor.engine import TensorEngine
from .tensor.feeder import RowFeeder
from .tensor.issue import TensorIssue
from .tensor.pe import PE
from .tensor.tile import Tile
from .vector.engine import VectorEngine
from .vector.lane import VectorLane

__all__ = ["TOPS", "make_top"]

TOPS = {
    "pe": PE,
    "tile": Tile,
    "array": SystolicArray,
    "psum": PartialSumBuffer,
    "psum_column": PartialSumColumn,
    "feeder": RowFeeder,
    "issue": TensorIssue,
    "tensor": TensorEngine,
    "core": NeuronCore,
    "vector": VectorEngine,
    "dma": DMAEngine,
    "sbuf": StateBuffer,
    "sequencer": lambda core: Sequencer("tensor"),
    "semaphores": lambda core: Semaphores(len(STREAMS)),
    # Blocks without parameters are the same for every core.
    "vector_lane": lambda core: VectorLane(),
    "add": lambda core: Add(),
    "multiply": lambda core: Multiply(),
    "int_pair_multiply_add": lambda core: IntPairMultiplyAdd(),
}
"""For each name what makes the component from a :class:`spec.config.CoreConfig`."""


def make_top(name, core):
    """The component called ``name`` for ``core``; raises :class:`SpecError` for an unknown name."""
    if name not in TOPS:
        raise SpecError("TOP", name, choices(TOPS))
    return TOPS[name](core)
