"""One lane of the vector engine: from the words of its partition to the bits of a result."""

from amaranth import Array, Cat, EnableInserter, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FLOAT_FORMATS, FORMAT_CODES, FORMATS
from spec.isa import COMPARISONS
from spec.vector import OPERATORS, RANDOM_START, RANDOM_WEYL, SHUFFLE_GROUP

from ..arith.convert import Convert
from ..arith.reciprocal import Reciprocal
from ..memory.local_access import WORD_BITS
from .alu import VectorALU, order_key
from .layouts import FORMAT_BITS, PARTIALS, join_layout, setting_layout, token_layout

__all__ = ["DIVISION_DELAY", "LANE_LATENCY", "VectorLane", "loads_layout"]

LANE_LATENCY = 7
"""Cycles from an element's token to its result."""
DIVISION_DELAY = Reciprocal.latency - 2
"""How many cycles later a reciprocal comes; the two operators do not delay it."""
_BELOW_ALL = 0xFFFF_FFFF
"""A NaN with a sign, which no element becomes: below all of them in their order."""
_FRACTION_OF_24_BITS = 24 << 23
"""Taken from binary32's exponent: times 2^-24."""
_NOT_FOUND = 0xFFFF_FFFF
_NAN = FLOAT_FORMATS["fp32"].nan
_BYPASS = OPERATORS.index("bypass")
_IDENTITIES = {"logical_and": 0x3F80_0000, "logical_or": 0, "logical_xor": 0}
"""What makes 1.0 or 0.0 of the first element."""

loads_layout = data.StructLayout({
    "word0": 1, "ahead1": 1, "word1": 1, "direct1": 1, "psum": 2, "scalars": 2, "stored": 1, "upper": 1, "value": 32, "row": 1, "state": 1})
"""What is put into a lane's registers in a cycle: the arriving word, of the partial-sum or the state buffer, as that of source
0, or as the next one of source 1; as the present one of source 1 its next one, or ``direct1`` the arriving word; a scalar,
from a half of the arriving word or ``value``; the affine value of the lane's partition; the result before the first, from a
scalar."""


def _nan_made_canonical(bits):
    return Mux(bits[:31] > FLOAT_FORMATS["fp32"].infinity, _NAN, bits)


class VectorLane(wiring.Component):
    """Takes elements out of words, converts them, applies two operators, converts and hands on what they give.

    Stages, a cycle each: select; convert; op0; op1; result; convert; result's bits. Running results of a reduction are
    kept after op1, and joined by op0's operator unit, which is free by then.

    Latency: a token's result :data:`LANE_LATENCY` cycles later, of ``divides`` :data:`DIVISION_DELAY` more. Throughput: an
    element a cycle; ``scans`` one in two, ``divides`` one in eight.

    Members
    -------
    enable : In(1)
        All but what ``loads`` puts in registers stands still where it is low.
    active : In(1)
        The instruction has the lane's partition; only then random numbers are drawn.
    sbuf : In(64), psum : In(32)
        Words of the lane's partition.
    loads : In(loads_layout)
    setting : In(setting_layout)
    token : In(token_layout)
        In the cycle after an element's last word was asked for.
    join : In(join_layout)
    target : In(4)
        Format of the result, in the cycle in which a result enters its conversion, 5 after its token.
    columns : Out(32 * 32), exchanged : In(32)
        Elements that were collected; what comes from another lane in their place.
    partner : Out(32), neighbor : In(32), has_neighbor : In(1), begins_joining : In(1)
        What the lane has to be joined with others, and the other's, if there is one; in the first step it is the element.
    o : Out(32)
        Bits of the result in the low bits.
    keep : Out(1)
        The predicate that came with it.
    special : Out(1)
        It is a NaN or infinite.
    """

    module_name = "onc_vector_lane"

    def __init__(self):
        super().__init__({
            "enable": In(1), "active": In(1), "sbuf": In(WORD_BITS), "psum": In(32), "loads": In(loads_layout), "setting": In(setting_layout),
            "token": In(token_layout), "join": In(join_layout), "target": In(FORMAT_BITS), "columns": Out(SHUFFLE_GROUP * 32),
            "exchanged": In(32), "partner": Out(32), "neighbor": In(32), "has_neighbor": In(1), "begins_joining": In(1), "o": Out(32), "keep": Out(1),
            "special": Out(1)})

    def elaborate(self, platform):
        m = Module()
        loads = self.loads
        words = [Signal(WORD_BITS, name=f"word_{index}") for index in range(2)]
        held = [Signal(WORD_BITS, name=f"held_{index}") for index in range(2)]
        arriving, ahead = [Mux(is_psum, self.psum, self.sbuf) for is_psum in loads.psum], Signal(WORD_BITS)
        m.d.comb += [words[0].eq(Mux(loads.word0, arriving[0], held[0])),
                     words[1].eq(Mux(loads.word1, Mux(loads.direct1, arriving[1], ahead), held[1]))]
        m.d.sync += [register.eq(word) for register, word in zip(held, words)]
        with m.If(loads.ahead1):
            m.d.sync += ahead.eq(arriving[1])
        scalars, row = [Signal(32, name=f"scalar_{index}") for index in range(2)], Signal(32)
        for index in range(2):
            with m.If(loads.scalars[index]):
                m.d.sync += scalars[index].eq(Mux(loads.stored, Mux(loads.upper, self.sbuf[32:], self.sbuf[:32]), loads.value))
        with m.If(loads.row):
            m.d.sync += row.eq(loads.value)
        m.submodules.path = EnableInserter(self.enable)(self._path(words, scalars, row))
        return m

    def _path(self, words, scalars, row):
        m = Module()
        setting, token = self.setting, self.token
        tokens = [token]
        for stage in range(1, 5):
            delayed = Signal(token_layout, name=f"token_{stage}")
            m.d.sync += delayed.eq(tokens[-1])
            tokens.append(delayed)
        x, keep = self._select(m, words, row, tokens[0])

        # op0, or a step of joining.
        join = self.join
        registers = [Signal(32, name=f"running_{index}") for index in range(SHUFFLE_GROUP)]
        running = Array(registers[:2 * PARTIALS])
        self._collect(m, registers, tokens[2], x[0][0])
        m.submodules.alu0, m.submodules.alu1 = alu0, alu1 = VectorALU(), VectorALU()
        fraction = Signal(32)
        before, chosen, second, found = Signal(32), Signal(32), Signal(32), Signal()
        state = Signal(32)
        m.d.comb += [
            fraction.eq(Mux(x[1][0] == 0, 0, x[1][0] - _FRACTION_OF_24_BITS)),
            chosen.eq(Mux(setting.drops, fraction, Mux(setting.ranges, tokens[2].position,
                          Mux((setting.selects & ~keep[0]) | (setting.replaces & found), scalars[0], x[0][0])))),
            before.eq(Mux(tokens[4].valid, alu1.o, state)),
            second.eq(Mux(setting.scans, before, Mux(setting.operand_in_0, x[1][0], scalars[0]))),
            alu0.raw.eq(setting.raw | setting.finds),
        ]
        m.d.comb += self.partner.eq(Mux(self.begins_joining, x[0][0], alu0.o))
        with m.If(setting.spans):
            m.d.comb += [alu0.operator.eq(Mux(self.has_neighbor, setting.op0, _BYPASS)), alu0.a.eq(self.partner),
                         alu0.b.eq(self.neighbor)]
        with m.Elif(join.valid):
            m.d.comb += [
                alu0.operator.eq(Mux(join.single, _BYPASS, setting.op1)),
                alu0.a.eq(Mux(join.forward_a, alu0.o, running[Cat(join.a, join.half)])),
                alu0.b.eq(Mux(join.forward_b, alu0.o, running[Cat(join.b, join.half)]))]
        with m.Else():
            m.d.comb += [alu0.operator.eq(setting.op0), alu0.a.eq(Mux(setting.reverse0, second, chosen)),
                         alu0.b.eq(Mux(setting.reverse0, chosen, second))]

        # op1, or the running results.
        position, element, identity = Signal(32), Signal(32), Signal(32)
        m.d.sync += position.eq(tokens[2].position)
        m.d.comb += element.eq(Mux(setting.reduces, x[0][1], alu0.o))
        is_logical = Signal()
        with m.Switch(setting.op1):
            for name, value in _IDENTITIES.items():
                with m.Case(OPERATORS.index(name)):
                    m.d.comb += [is_logical.eq(1), identity.eq(value)]
        first, operand = Signal(32), Signal(32)
        reduces = setting.reduces | setting.reduces_results
        m.d.comb += [
            alu1.raw.eq(setting.raw), alu1.operator.eq(setting.op1),
            first.eq(Mux(setting.ranges, position, alu0.o)),
            operand.eq(Mux(setting.cumulates, before, Mux(setting.operand_in_1, x[1][1], scalars[1]))),
        ]
        with m.If(reduces):
            m.d.comb += [alu1.a.eq(element), alu1.b.eq(running[Cat(tokens[3].partial, tokens[3].half)])]
            with m.If(tokens[3].first):
                m.d.comb += [alu1.b.eq(identity), alu1.operator.eq(Mux(is_logical, setting.op1, _BYPASS))]
        with m.Else():
            m.d.comb += [alu1.a.eq(Mux(setting.reverse1, operand, first)), alu1.b.eq(Mux(setting.reverse1, first, operand))]

        # What is kept: running results, the result before the next.
        joined = Signal(join_layout)
        m.d.sync += joined.eq(join)
        with m.If(joined.valid):
            m.d.sync += running[Cat(joined.a, joined.half)].eq(alu0.o)
        with m.If(tokens[4].valid):
            m.d.sync += state.eq(alu1.o)
            with m.If(reduces):
                m.d.sync += running[Cat(tokens[4].partial, tokens[4].half)].eq(alu1.o)
        with m.If(self.loads.state):
            m.d.sync += state.eq(Mux(setting.scans, scalars[0], scalars[1]))
        self._sort(m, running, tokens[2], x[0][0])
        m.d.comb += found.eq(self._find(m, running, tokens[2], x[0][0]))

        m.submodules.reciprocal = reciprocal = Reciprocal()
        m.d.comb += [reciprocal.start.eq(tokens[2].valid & setting.divides), reciprocal.x.eq(x[0][0])]

        earlier, result = Signal(32), Signal(32)
        m.d.sync += earlier.eq(alu0.o)
        negated = Cat(alu0.o[:31], alu0.o[31] ^ (setting.negate & (alu0.o != _NAN)))
        in_range = (earlier[:31] != 0) & (alu1.o[:31] != 0)
        with m.If(joined.valid & joined.final):
            m.d.sync += result.eq(Mux(setting.collects, self.exchanged, negated))
        with m.Elif(setting.ranges):
            m.d.sync += result.eq(_nan_made_canonical(Mux(in_range, x[0][2], setting.fill)))
        with m.Elif(setting.drops):
            m.d.sync += result.eq(Mux(earlier == 0, x[0][2], 0))
        with m.Elif(setting.reduces_results):
            m.d.sync += result.eq(earlier)
        with m.Elif(setting.divides):
            m.d.sync += result.eq(reciprocal.o)
        with m.Else():
            m.d.sync += result.eq(alu1.o)
        self._hand_on(m, result, keep)
        return m

    def _collect(self, m, registers, token, element):
        """Keep elements by their number, for other lanes."""
        m.d.comb += self.columns.eq(Cat(registers))
        with m.If(token.valid & self.setting.collects):
            for index, register in enumerate(registers):
                with m.If(token.affine[:(SHUFFLE_GROUP - 1).bit_length()] == index):
                    m.d.sync += register.eq(element)

    def _sort(self, m, running, token, element):
        """Put an element at its place among the largest; those below it move on, and the last one is lost."""
        setting, key = self.setting, Signal(32)
        value = _nan_made_canonical(element)
        m.d.comb += key.eq(order_key(value))
        above = [Signal(name=f"above_{index}") for index in range(PARTIALS)]
        m.d.comb += [flag.eq(key > order_key(running[index])) for index, flag in enumerate(above)]
        with m.If(setting.sorts & token.valid):
            for index, flag in enumerate(above):
                with m.If(flag):
                    m.d.sync += running[index].eq(Mux(above[index - 1], running[index - 1], value) if index else value)
        with m.If(setting.sorts & self.loads.state):
            m.d.sync += [running[index].eq(_BELOW_ALL) for index in range(PARTIALS)]

    def _find(self, m, running, token, element):
        """Whether an element is one of the first eight running results that was not found yet; the first such one then is."""
        setting, value, found = self.setting, _nan_made_canonical(element), Signal(PARTIALS)
        same, first = Signal(PARTIALS), Signal(PARTIALS)
        m.d.comb += [same.eq(~found & Cat(value == running[index] for index in range(PARTIALS))), first.eq(same & -same)]
        with m.If(token.valid & (setting.finds | setting.replaces)):
            m.d.sync += found.eq(found | first)
            for index in range(PARTIALS):
                with m.If(setting.finds & first[index]):
                    m.d.sync += running[PARTIALS + index].eq(token.affine)
        with m.If(token.valid & setting.stores):
            m.d.sync += running[token.partial].eq(value)
        with m.If((setting.finds | setting.replaces) & self.loads.state):
            m.d.sync += found.eq(0)
            with m.If(setting.finds):
                m.d.sync += [running[PARTIALS + index].eq(_NOT_FOUND) for index in range(PARTIALS)]
        return same.any()

    def _select(self, m, words, row, token):
        """Both elements as binary32 or raw, at op0, op1 and the result; and what the predicate says, from op0 on."""
        setting = self.setting
        elements, x = [], []
        for index, word in enumerate(words):
            element = Signal(32, name=f"element_{index}")
            shifted = (word >> (token[f"byte{index}"] << 3))[:32]
            with m.Switch(setting[f"size{index}"]):
                for size in range(3):
                    with m.Case(size):
                        m.d.comb += element.eq(shifted[:8 << size])
            elements.append(element)
        affine = Signal(signed(32))
        m.d.comb += affine.eq(row + token.affine)
        compared, zero = Signal(), Signal()
        m.d.comb += zero.eq(affine == 0)
        outcomes = {"==": zero, "!=": ~zero, "<": affine < 0, "<=": (affine < 0) | zero, ">": (affine >= 0) & ~zero,
                    ">=": affine >= 0}
        with m.Switch(setting.comparison):
            for number, symbol in enumerate(COMPARISONS):
                with m.Case(number):
                    m.d.comb += compared.eq(outcomes[symbol])
        keep = [Signal(name=f"keep_{stage}") for stage in range(6)]
        m.d.sync += [keep[0].eq(Mux(setting.by_predicate, elements[1] != 0, compared) ^ setting.inverts),
                     *(later.eq(sooner) for sooner, later in zip(keep, keep[1:]))]
        drawn = self._draw(m, token, elements[0], row)
        elements[0] = Mux(setting.affine_data, affine, Mux(setting.draws, drawn, elements[0]))
        elements[1] = Mux(setting.drops, drawn >> 8, elements[1])
        for index, bits in enumerate(elements):
            convert, raw = Convert(FORMATS, ["fp32"]), setting.raw & ~(setting.drops & index)
            m.submodules[f"convert_{index}"] = convert
            stages = [Signal(32, name=f"raw_{index}"), *(Signal(32, name=f"x{index}_{stage}") for stage in range(3))]
            m.d.comb += [convert.bits.eq(bits), convert.source.eq(setting[f"format{index}"]),
                         convert.target.eq(FORMAT_CODES["fp32"])]
            m.d.sync += [stages[0].eq(bits), stages[1].eq(Mux(raw, stages[0], convert.o)), stages[2].eq(stages[1]),
                         stages[3].eq(stages[2])]
            x.append(stages[1:])
        return x, keep[1:]

    def _draw(self, m, token, element, row):
        """The next random word; a token that draws takes it."""
        setting, drawn = self.setting, Signal(32)
        x, y, z, w, v, d = state = [Signal(32, init=word, name=f"random_{name}") for name, word in zip("xyzwvd", RANDOM_START)]
        mixed, following, weyl = Signal(32), Signal(32), Signal(32)
        m.d.comb += [mixed.eq(x ^ x >> 2), following.eq(v ^ v << 4 ^ mixed ^ mixed << 1), weyl.eq(d + RANDOM_WEYL),
                     drawn.eq(following + weyl)]
        with m.If(token.valid & self.active & (setting.draws | setting.drops)):
            m.d.sync += [x.eq(y), y.eq(z), z.eq(w), w.eq(v), v.eq(following), d.eq(weyl)]
        with m.If(token.valid & self.active & setting.seeds):
            m.d.sync += [register.eq(word ^ change) for register, word, change in zip(state, RANDOM_START, (element, row, 0, 0, 0, 0))]
        return drawn

    def _hand_on(self, m, result, keep):
        m.submodules.convert_result = convert = Convert(["fp32"], FORMATS)
        raw, target, special = Signal(32), Signal(FORMAT_BITS), Signal()
        m.d.comb += [convert.bits.eq(result), convert.source.eq(FORMAT_CODES["fp32"]), convert.target.eq(self.target)]
        m.d.sync += [raw.eq(result), target.eq(self.target), self.o.eq(Mux(self.setting.raw | self.setting.finds, raw, convert.o)),
                     self.special.eq(special)]
        delayed = keep[-1]
        m.d.sync += self.keep.eq(delayed)
        with m.Switch(target):
            for name, form in FLOAT_FORMATS.items():
                magnitude = convert.o[form.padding:form.width - 1]
                with m.Case(FORMAT_CODES[name]):
                    m.d.comb += special.eq(magnitude >= (form.infinity if form.has_infinity else form.nan) >> form.padding)
        return m
