"""Whether a descriptor may be carried out, before anything is moved."""

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.dma import DIMENSIONS, SPACES
from spec.formats import FORMAT_CODES, FORMATS
from spec.isa import UPDATES, Cause
from spec.memory import ADDRESS_BITS, OFFSET_BITS, PARTITION_BITS

from ..control.layouts import CAUSE_BITS
from .layouts import descriptor_layout, side_layout, sides_of

__all__ = ["Check", "element_size"]

_MEMORY, _SBUF, _PSUM = range(len(SPACES))
_REACH = signed(52)
_COUNT_BITS = 32


def element_size(m, name, code):
    """A signal: the size of a format's elements as a power of two of bytes."""
    size = Signal(2, name=name)
    with m.Switch(code):
        for form in FORMATS.values():
            with m.Case(FORMAT_CODES[form.name]):
                m.d.comb += size.eq((form.width // 8).bit_length() - 1)
    return size


def _any(conditions):
    return reduce(or_, conditions)


class Check(wiring.Component):
    """The checks of ``spec.dma``, in its order, with one multiplier.

    Latency: 17 cycles from ``start`` to ``done``.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    start : In(1), done : Out(1)
        A cycle each.
    descriptor : In(descriptor_layout)
        Held from ``start`` to ``done``.
    written : In
        Banks of the partial-sum buffer that something was written to.
    cause : Out(4)
        With ``done``.
    """

    module_name = "onc_dma_check"

    def __init__(self, core):
        self._core = core
        super().__init__({"start": In(1), "done": Out(1), "descriptor": In(descriptor_layout), "written": In(core.psum_banks),
                          "cause": Out(CAUSE_BITS)})

    def elaborate(self, platform):
        m = Module()
        sides = []
        for name, bits in zip(("source", "destination"), sides_of(self.descriptor)):
            side = Signal(side_layout, name=name)
            m.d.comb += side.eq(bits)
            sides.append(side)
        # Sixteen products in turn: for each side and dimension the reach, then the number of elements.
        number, active = Signal(range(4 * DIMENSIONS)), Signal()
        dims = [side.dims[index] for side in sides for index in range(DIMENSIONS)]
        step, count = Signal(signed(32)), Signal(16)
        is_product, is_destination = number[0], number[-1]
        with m.Switch(number[1:]):
            for index, dim in enumerate(dims):
                with m.Case(index):
                    m.d.comb += [step.eq(dim.step), count.eq(dim.count)]
        elements = [Signal(_COUNT_BITS, name=f"elements_{name}", init=1) for name in ("source", "destination")]
        too_many = Signal()
        space = Mux(is_destination, sides[1].space, sides[0].space)
        across = Signal()
        m.d.comb += across.eq((space != _MEMORY) & (step[:OFFSET_BITS] == 0))
        left, right = Signal(signed(_COUNT_BITS + 1)), Signal(signed(17))
        m.d.comb += [left.eq(Mux(is_product, Mux(is_destination, elements[1], elements[0]),
                                 Mux(across, step >> OFFSET_BITS, step))),
                     right.eq(count - ~is_product)]
        outcome = Signal(signed(50))
        m.d.comb += outcome.eq(left * right)

        reach = {}
        for index, name in enumerate(("source", "destination")):
            for way in ("along", "across"):
                low, high = (Signal(_REACH, name=f"{name}_{way}_{end}") for end in ("low", "high"))
                reach[index, way] = low, high
                here = active & ~is_product & (is_destination == index) & (across == (way == "across"))
                with m.If(here & (outcome < 0)):
                    m.d.sync += low.eq(low + outcome)
                with m.Elif(here):
                    m.d.sync += high.eq(high + outcome)
            with m.If(active & is_product & (is_destination == index)):
                m.d.sync += elements[index].eq(outcome)
                with m.If(outcome[_COUNT_BITS:] != 0):
                    m.d.sync += too_many.eq(1)
        with m.If(active):
            m.d.sync += [number.eq(number + 1), active.eq(~number.all())]
        with m.If(self.start):
            m.d.sync += [active.eq(1), number.eq(0), too_many.eq(0), *(each.eq(1) for each in elements)]
            for index, side in enumerate(sides):
                local = side.space != _MEMORY
                along, away = side.address[:OFFSET_BITS], side.address[OFFSET_BITS:]
                m.d.sync += [*(end.eq(Mux(local, along, side.address)) for end in reach[index, "along"]),
                             *(end.eq(away[:PARTITION_BITS]) for end in reach[index, "across"])]
        finished = Signal()
        m.d.sync += finished.eq(active & number.all())
        m.d.comb += self.done.eq(finished)
        self._judge(m, sides, reach, elements, too_many)
        return m

    def _judge(self, m, sides, reach, elements, too_many):
        core = self._core
        cases = [(self._illegal(sides) | too_many | (elements[0] != elements[1]), Cause.ILLEGAL_FIELD)]
        partition_bytes = {_SBUF: core.sbuf_bytes, _PSUM: core.psum_banks * core.psum_bank_bytes}
        for index, (name, side) in enumerate(zip(("source", "destination"), sides)):
            size = element_size(m, f"{name}_size", side.format)
            below = (1 << size) - 1
            (low, high), (first, last) = reach[index, "along"], reach[index, "across"]
            limit, partitions = Signal(ADDRESS_BITS + 1, name=f"{name}_limit"), Signal(range(1025), name=f"{name}_partitions")
            m.d.comb += limit.eq(1 << ADDRESS_BITS)
            with m.Switch(side.space):
                for space, limits in ((_SBUF, core.rows), (_PSUM, core.cols)):
                    with m.Case(space):
                        m.d.comb += [limit.eq(partition_bytes[space]), partitions.eq(limits)]
            misplaced = _any([(side.address & below) != 0, *((side.dims[i].step & below) != 0 for i in range(DIMENSIONS))])
            cases += [(misplaced | (low < 0) | (high + (1 << size) > limit), Cause.ADDRESS_RANGE),
                      ((side.space != _MEMORY) & ((first < 0) | (last >= partitions)), Cause.PARTITION_RANGE)]
        bank_bits = (core.psum_bank_bytes - 1).bit_length()
        low, high = (end[bank_bits:] for end in reach[0, "along"])
        unwritten = Cat((low <= bank) & (high >= bank) & ~self.written[bank] for bank in range(core.psum_banks))
        cases.append(((sides[0].space == _PSUM) & (unwritten != 0), Cause.BANK_INVALID))
        for wrong, cause in reversed(cases):
            with m.If(wrong):
                m.d.comb += self.cause.eq(cause)

    def _illegal(self, sides):
        descriptor, (source, destination) = self.descriptor, sides
        wide = _any(source.format == FORMAT_CODES[form.name] for form in FORMATS.values() if form.width == 32)
        wrong = [
            descriptor.header_reserved != 0, descriptor.reserved != 0, descriptor.update_kind >= len(UPDATES),
            ~descriptor.update_used & ((descriptor.update_kind != 0) | (descriptor.update_semaphore != 0)
                                       | (descriptor.update_value != 0)),
            source.space >= len(SPACES), destination.space >= _PSUM, (source.space == _PSUM) & ~wide,
            descriptor.accumulate & (destination.format != FORMAT_CODES["fp32"]),
        ]
        for side in sides:
            local = side.space != _MEMORY
            wrong += [side.format >= len(FORMATS), local & (side.address[OFFSET_BITS + PARTITION_BITS:] != 0)]
            for index in range(DIMENSIONS):
                dim = side.dims[index]
                top = dim.step[OFFSET_BITS:]
                along = (top == 0) | (top.all() & (dim.step[:OFFSET_BITS] != 0))
                wrong += [dim.count == 0, local & ~along & (dim.step[:OFFSET_BITS] != 0)]
        return _any(wrong)
