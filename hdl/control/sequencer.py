"""One instruction stream: fetch, wait, execute or issue, update."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.isa import COMPARISONS, INSTRUCTION_BYTES, OPCODES, REGISTERS, Cause

from .layouts import INSTRUCTION_BITS, instruction_layout, own_fields_layout, update_layout
from .legality import Legality

__all__ = ["ADDRESS_BITS", "Sequencer", "fetch_layout"]

ADDRESS_BITS = 32

fetch_layout = data.StructLayout({"instruction": INSTRUCTION_BITS, "error": 1})
"""Memory's answer to a fetch."""


class Sequencer(wiring.Component):
    """Runs the program of one stream, an instruction after the other; semantics of ``docs/isa.md``.

    Control instructions are executed here, others are issued to the stream's engine, which answers ``done`` or
    ``refused``. A refused instruction stops the stream before anything has changed; ``cause`` and ``address`` tell.

    Latency: a control instruction without waits and updates takes 4 cycles and memory's; each wait that is met and each
    update one more.

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
        header = instruction.header
        m.submodules.legality = legality = Legality(self._name)
        address, following, cause = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS), Signal(3)
        index, stops = Signal(2), Signal()
        m.d.comb += [
            legality.i.eq(instruction), self.address.eq(address), self.cause.eq(cause),
            self.fetch_request.payload.eq(address), self.issue.payload.eq(instruction),
        ]

        fields, left, right, write = self._control_operands(m, instruction)

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
                m.d.sync += [instruction.eq(self.fetch_response.payload.instruction), index.eq(0), stops.eq(0),
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
                self._wait(m, header, index)
            with m.State("execute"):
                self._execute(m, instruction, fields, left, right, write, address, following, stops, refuse)
            with m.State("busy"):
                with m.If(self.refused != Cause.NONE):
                    refuse(self.refused)
                with m.Elif(self.done):
                    m.next = "update"
            with m.State("update"):
                self._update(m, header, index, address, following, stops)
        return m

    def _wait(self, m, header, index):
        """Each wait in turn; the first slot that is not used ends them."""
        entry = Signal(data.StructLayout({"used": 1, "comparison": 3, "semaphore": 8, "value": 16}), name="waiting")
        with m.Switch(index):
            for number in range(3):
                with m.Case(number):
                    m.d.comb += [entry[name].eq(header[f"wait{number}_{name}"])
                                 for name in ("used", "comparison", "semaphore", "value")]
        m.d.comb += self.semaphore.eq(entry.semaphore)
        met = self._compares(m, "met", entry.comparison, self.semaphore_value, entry.value)
        with m.If(~entry.used):
            m.d.sync += index.eq(0)
            m.next = "execute"
        with m.Elif(met):
            m.d.sync += index.eq(index + 1)

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

    def _control_operands(self, m, instruction):
        """A control instruction's fields, its two sides, and a way to write a register."""
        opcode = instruction.header.opcode
        fields = Signal(data.StructLayout({"target": 6, "left": 6, "is_register": 1, "right": signed(32), "comparison": 3,
                                           "distance": signed(24)}), name="fields")
        own = {name: Signal(own_fields_layout(name), name=f"own_{name}") for name in ("move", "add", "branch")}
        m.d.comb += [structure.as_value().eq(instruction.own) for structure in own.values()]
        with m.Switch(opcode):
            for name, structure in own.items():
                with m.Case(OPCODES[name].code):
                    m.d.comb += [fields[field].eq(structure[field]) for field, _, _ in OPCODES[name].fields]

        m.submodules.registers = registers = memory.Memory(shape=32, depth=REGISTERS, init=[])
        # The memory cannot be cleared: a register that was not written since reset is zero.
        written = Signal(REGISTERS)

        def read(name, number):
            port = registers.read_port(domain="comb")
            value = Signal(signed(32), name=name)
            m.d.comb += [port.addr.eq(number), value.eq(Mux(written.bit_select(number, 1), port.data, 0))]
            return value

        write_port = registers.write_port()

        def write(number, value):
            m.d.comb += [write_port.addr.eq(number), write_port.data.eq(value), write_port.en.eq(1)]
            m.d.sync += written.bit_select(number, 1).eq(1)

        right = Signal(signed(32))
        m.d.comb += [self.register_value.eq(read("shown", self.register_number)),
                     right.eq(Mux(fields.is_register, read("right_register", fields.right[:6]), fields.right))]
        for index, pattern in enumerate(instruction.patterns):
            indexed = read(f"index_{index}", pattern.register)
            m.d.comb += self.offsets[index].eq(pattern.offset + Mux(pattern.indexed, indexed, 0))
        return fields, read("left", fields.left), right, write

    def _execute(self, m, instruction, fields, left, right, write, address, following, stops, refuse):
        no_register = Signal()
        m.d.comb += no_register.eq(fields.is_register & ((fields.right < 0) | (fields.right >= REGISTERS)))
        taken = self._compares(m, "taken", fields.comparison, left, right)
        m.next = "update"
        with m.Switch(instruction.header.opcode):
            with m.Case(OPCODES["nop"].code):
                pass
            with m.Case(OPCODES["halt"].code):
                m.d.sync += stops.eq(1)
            for name, result in (("move", right), ("add", left + right)):
                with m.Case(OPCODES[name].code):
                    with m.If(no_register):
                        refuse(Cause.ILLEGAL_FIELD)
                    with m.Else():
                        write(fields.target, result)
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

    def _update(self, m, header, index, address, following, stops):
        entry = Signal(data.StructLayout({"used": 1, "semaphore": 8, "kind": 2, "value": 16}), name="updating")
        with m.Switch(index):
            for number in range(2):
                with m.Case(number):
                    m.d.comb += [entry[name].eq(header[f"update{number}_{name}"])
                                 for name in ("used", "kind", "semaphore", "value")]
        m.d.comb += [self.update.payload[name].eq(entry[name]) for name in ("kind", "semaphore", "value")]
        with m.If(entry.used):
            m.d.comb += self.update.valid.eq(1)
            with m.If(self.update.ready):
                m.d.sync += index.eq(index + 1)
        with m.Else():
            m.d.comb += self.interrupt.eq(header.notify)
            m.d.sync += address.eq(following)
            m.next = "fetch"
            with m.If(stops):
                m.next = "idle"
