"""From "multiply these matrices in memory" to a program: instructions, descriptors and where all of it stands."""

import numpy as np

from spec.assembly import assemble
from spec.dma import DESCRIPTOR_BYTES

from .matmul_plan import OVER, MatmulPlan, aligned

__all__ = ["MatmulProgram"]

_ALIGN = 128
_RELEASED = OVER + 1
"""Semaphore: products that the host lets go ahead."""


class MatmulProgram:
    """Products one after another, each memory to memory; see :class:`sim.matmul_plan.MatmulPlan`.

    Each product but the first waits until the host has released it, so that its operands can come of results before it.
    The program notifies whenever a result is in memory.

    Parameters
    ----------
    core : spec.config.CoreConfig
    products : sequence of sim.matmul_plan.Product
    base : int
        Where in memory it begins, a multiple of 128.

    Attributes
    ----------
    program, descriptors : bytes
    program_address, descriptors_address : int
    starts : dict of str to int
        Where each stream starts.
    rings : dict of int to (int, int)
        Base and size of each ring.
    addresses : list of (int, int, int)
        Of each product's ``stationary``, ``moving`` and result.
    end : int
        Of the memory that is used.
    macs, waves : int
        Multiply-accumulates that the products ask for, and cycles that the array is busy with them.

    Raises
    ------
    SpecError
        A product that the core does not compute, or a core whose state buffer is too small.
    """

    def __init__(self, core, products, base=0):
        self.products = list(products)
        self.macs = sum(product.macs for product in self.products)
        plans = [MatmulPlan(core, product) for product in self.products]
        self.waves = sum(plan.waves for plan in plans)
        self._write_program(plans, base)
        # What the descriptors say depends on where they end, their number does not.
        counts = {ring: len(content) for ring, content in _joined(plan.descriptors(0, 0, 0) for plan in plans).items()}
        self.descriptors_address = at = aligned(base + len(self.program), _ALIGN)
        self.rings = {}
        for ring, size in counts.items():
            self.rings[ring] = at, size // DESCRIPTOR_BYTES
            at += size
        self.addresses = []
        for product in self.products:
            places = []
            for size in product.bytes:
                places.append(at)
                at = aligned(at + size, _ALIGN)
            self.addresses.append(tuple(places))
        self.end = at
        contents = _joined(plan.descriptors(*places) for plan, places in zip(plans, self.addresses))
        self.descriptors = b"".join(contents.values())

    def _write_program(self, plans, base):
        goes = [f"nop ; wait s{OVER}>=1, s{_RELEASED}>=1 ; then s{OVER}-=1, s{_RELEASED}-=1"]
        streams = {
            "tensor": [line for plan in plans for line in plan.tensor_lines()],
            "sync": [line for index, plan in enumerate(plans) for line in (goes * (index > 0) + plan.load_lines())],
            "gpsimd": [line for plan in plans for line in plan.store_lines()]}
        lines, self.starts, self.program_address = [], {}, base
        for stream, own in streams.items():
            self.starts[stream] = base + _ALIGN * len(lines)
            lines += [*own, "halt"]
        self.program = assemble("\n".join(lines))

    def load(self, machine):
        """Write the program and the descriptors into a machine's memory, and set its rings; ``machine`` is a
        :class:`golden.core.Core` or a :class:`sim.core.CoreDriver`."""
        _write(machine, self.program_address, np.frombuffer(self.program, np.uint8))
        _write(machine, self.descriptors_address, np.frombuffer(self.descriptors, np.uint8))
        for ring, (base, size) in self.rings.items():
            machine.set_ring(ring, base, size)

    def put(self, machine, number, stationary, moving):
        """Write a product's operands, bit patterns ``[K, M]`` and ``[K, N]``, into a machine's memory."""
        for at, operand in zip(self.addresses[number], (stationary, moving)):
            _write(machine, at, np.ascontiguousarray(operand).reshape(-1).view(np.uint8))

    def start(self, machine):
        """Start its streams."""
        for stream, address in self.starts.items():
            machine.start(stream, address)

    def release(self, machine):
        """Let one product more go ahead."""
        machine.add_semaphore(_RELEASED, 1)

    def result(self, machine, number):
        """A product's result, uint32 patterns ``[M, N]``."""
        product, first = self.products[number], self.addresses[number][2]
        content = np.frombuffer(machine.memory, np.uint8)[first:first + 4 * product.m * product.n]
        return content.view(np.uint32).reshape(product.m, product.n).copy()


def _joined(parts):
    """Descriptors of all products by ring."""
    rings = {}
    for part in parts:
        for ring, content in part.items():
            rings[ring] = rings.get(ring, b"") + content
    return rings


def _write(machine, at, content):
    memory = np.frombuffer(machine.memory, np.uint8) if isinstance(machine.memory, bytearray) else machine.memory
    memory[at:at + len(content)] = content
