"""One instruction stream: fetch, wait, execute or issue, update."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.isa import COMPARISONS, HEADER, INSTRUCTION_BYTES, OPCODES, REGISTERS, UPDATES_EACH, WAITS, Cause

from .layouts import INSTRUCTION_BITS, instruction_layout, own_fields_layout, update_layout
from .legality import Legality
from .register_file import RegisterFile

__all__ = ["ADDRESS_BITS", "Sequencer", "fetch_layout"]

ADDRESS_BITS = 32

fetch_layout = data.StructLayout({"instruction": INSTRUCTION_BITS, "error": 1})
"""Memory's answer to a fetch."""


class Sequencer(wiring.Component):
    """Runs the program of one stream, an instruction after the other; semantics of ``docs/isa.md``.

    Control instructions are executed here, others are issued to the stream's engine, which answers ``done`` or
    ``refused``. A refused instruction stops the stream before anything has changed; ``cause`` and ``address`` tell.

    Latency: a control instruction without waits and updates takes 6 cycles where memory answers in the cycle after the
    request; each wait that is met and each update one more.

    Parameters
    ----------
    name : str
        The stream, one of ``spec.isa.STREAMS``.

    Members
    -------
    start : In(1)
        Run from ``start_address``; while the stream runs it has no effect.
    start_address : In(32)
        A multiple of an instruction's size.
    running, cause, address : Out
        Whether it runs; a :class:`spec.isa.Cause`; where it is, or stopped.
    interrupt : Out(1)
        For one cycle, an instruction that notifies is done.
    fetch_request : Out(stream of addresses)
    fetch_response : In(stream of fetch_layout)
    semaphore : Out(8), semaphore_value : In(16)
        The semaphore that is waited for.
    update : Out(stream of update_layout)
    issue : Out(stream of instruction_layout)
        Holds until ``done`` or ``refused``.
    offsets : Out, 3 x signed(33)
        Byte offset of each access pattern, its register added.
    done : In(1), refused : In(3)
        The engine's answer to an accepted instruction, for one cycle: done, or a cause other than 0.
    register_number : In(6), register_value : Out(32)
        A look at the registers.
    """

    def __init__(self, name):
        self._name = name
        super().__init__({
            "start": In(1), "start_address": In(ADDRESS_BITS), "running": Out(1), "cause": Out(3),
            "address": Out(ADDRESS_BITS), "interrupt": Out(1),
            "fetch_request": Out(stream.Signature(ADDRESS_BITS)), "fetch_response": In(stream.Signature(fetch_layout)),
            "semaphore": Out(8), "semaphore_value": In(16), "update": Out(stream.Signature(update_layout)),
            "issue": Out(stream.Signature(instruction_layout)), "offsets": Out(signed(ADDRESS_BITS + 1)).array(3),
            "done": In(1), "refused": In(3), "register_number": In(6), "register_value": Out(32),
        })

    @property
    def module_name(self):
        return f"onc_sequencer_{self._name}"

    def elaborate(self, platform):
        m = Module()
        instruction = Signal(instruction_layout, reset_less=True)
        m.submodules.legality = legality = Legality(self._name)
        address, following, cause = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS), Signal(3)
        stops = Signal()
        m.d.comb += [
            legality.i.eq(instruction), self.address.eq(address), self.cause.eq(cause),
            self.fetch_request.payload.eq(address), self.issue.payload.eq(instruction),
        ]
        fields = self._fields(m, instruction)
        registers, left, right = self._operands(m, instruction, fields)
        no_register, taken = Signal(), self._compares(m, "taken", fields.comparison, left, right)
        m.d.comb += no_register.eq(fields.is_register & ((fields.right < 0) | (fields.right >= REGISTERS)))

        slot = Signal(range(max(WAITS, UPDATES_EACH) + 1))
        wait = self._slot(m, instruction.header, "wait", WAITS, slot)
        update = self._slot(m, instruction.header, "update", UPDATES_EACH, slot)
        met = self._compares(m, "met", wait.comparison, self.semaphore_value, wait.value)
        m.d.comb += [self.semaphore.eq(wait.semaphore),
                     *(self.update.payload[name].eq(update[name]) for name in ("semaphore", "kind", "value"))]

        def refuse(reason):
            m.d.sync += cause.eq(reason)
            m.next = "idle"

        with m.FSM() as fsm:
            m.d.comb += self.running.eq(~fsm.ongoing("idle"))
            with m.State("idle"):
                with m.If(self.start):
                    m.d.sync += [address.eq(self.start_address), cause.eq(Cause.NONE)]
                    m.next = "fetch"
            with m.State("fetch"):
                m.d.comb += self.fetch_request.valid.eq(1)
                with m.If(self.fetch_request.ready):
                    m.next = "response"
            with m.State("response"):
                m.d.comb += self.fetch_response.ready.eq(1)
                m.d.sync += [instruction.eq(self.fetch_response.payload.instruction), slot.eq(0), stops.eq(0),
                             following.eq(address + INSTRUCTION_BYTES)]
                with m.If(self.fetch_response.valid):
                    m.next = "check"
                    with m.If(self.fetch_response.payload.error):
                        refuse(Cause.FETCH)
            with m.State("check"):
                m.next = "wait"
                with m.If(legality.cause != Cause.NONE):
                    refuse(legality.cause)
            with m.State("wait"):
                with m.If(~wait.used):
                    m.d.sync += slot.eq(0)
                    m.next = "execute"
                with m.Elif(met):
                    m.d.sync += slot.eq(slot + 1)
            with m.State("execute"):
                m.next = "update"
                with m.Switch(instruction.header.opcode):
                    with m.Case(OPCODES["nop"].code):
                        pass
                    with m.Case(OPCODES["halt"].code):
                        m.d.sync += stops.eq(1)
                    for name, result in (("move", right), ("add", left + right)):
                        with m.Case(OPCODES[name].code):
                            m.d.comb += [registers.write_data.eq(result), registers.write_enable.eq(~no_register)]
                            with m.If(no_register):
                                refuse(Cause.ILLEGAL_FIELD)
                    with m.Case(OPCODES["branch"].code):
                        with m.If(no_register | (fields.comparison >= len(COMPARISONS))):
                            refuse(Cause.ILLEGAL_FIELD)
                        with m.Elif(taken):
                            m.d.sync += following.eq(address + fields.distance * INSTRUCTION_BYTES)
                    with m.Default():
                        m.d.comb += self.issue.valid.eq(1)
                        m.next = "execute"
                        with m.If(self.issue.ready):
                            m.next = "busy"
            with m.State("busy"):
                with m.If(self.refused != Cause.NONE):
                    refuse(self.refused)
                with m.Elif(self.done):
                    m.next = "update"
            with m.State("update"):
                m.d.comb += self.update.valid.eq(update.used)
                with m.If(~update.used):
                    m.d.comb += self.interrupt.eq(instruction.header.notify)
                    m.d.sync += address.eq(following)
                    m.next = "fetch"
                    with m.If(stops):
                        m.next = "idle"
                with m.Elif(self.update.ready):
                    m.d.sync += slot.eq(slot + 1)
        return m

    @staticmethod
    def _slot(m, header, kind, count, number):
        """One of the header's waits or updates; behind the last there is one that is not used."""
        names = [name.removeprefix(f"{kind}0_") for name, _, _ in HEADER if name.startswith(f"{kind}0_")]
        slot = Signal(data.StructLayout({name: header[f"{kind}0_{name}"].shape() for name in names}), name=kind)
        with m.Switch(number):
            for index in range(count):
                with m.Case(index):
                    m.d.comb += [slot[name].eq(header[f"{kind}{index}_{name}"]) for name in names]
        return slot

    @staticmethod
    def _compares(m, name, comparison, left, right):
        result = Signal(name=name)
        outcomes = {"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right,
                    ">": left > right, ">=": left >= right}
        with m.Switch(comparison):
            for number, symbol in enumerate(COMPARISONS):
                with m.Case(number):
                    m.d.comb += result.eq(outcomes[symbol])
        return result

    @staticmethod
    def _fields(m, instruction):
        """The fields of move, add and branch; those that an operation does not have are 0."""
        own = {name: Signal(own_fields_layout(name), name=f"own_{name}") for name in ("move", "add", "branch")}
        shapes = {field: shape for structure in own.values() for field, shape in structure.shape() if field != "reserved"}
        fields = Signal(data.StructLayout({field: shape.shape for field, shape in shapes.items()}), name="fields")
        m.d.comb += [structure.as_value().eq(instruction.own) for structure in own.values()]
        with m.Switch(instruction.header.opcode):
            for name, structure in own.items():
                with m.Case(OPCODES[name].code):
                    m.d.comb += [fields[field].eq(structure[field]) for field, _, _ in OPCODES[name].fields]
        return fields

    def _operands(self, m, instruction, fields):
        """The registers, with the target as the place to write, and the two sides of a control instruction."""
        addresses = {"left": fields.left, "right": fields.right[:6], "shown": self.register_number,
                     **{f"index_{index}": pattern.register for index, pattern in enumerate(instruction.patterns)}}
        m.submodules.registers = registers = RegisterFile(32, REGISTERS, len(addresses))
        values = {}
        for (name, number), read in zip(addresses.items(), registers.read):
            m.d.comb += read.address.eq(number)
            values[name] = read.data.as_signed()
        for index, pattern in enumerate(instruction.patterns):
            m.d.comb += self.offsets[index].eq(pattern.offset + Mux(pattern.indexed, values[f"index_{index}"], 0))
        right = Signal(signed(32))
        m.d.comb += [self.register_value.eq(values["shown"]), registers.write_address.eq(fields.target),
                     right.eq(Mux(fields.is_register, values["right"], fields.right))]
        return registers, values["left"], right
