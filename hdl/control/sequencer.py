"""One instruction stream: fetch, wait, execute or issue, and update when done."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import RINGS
from spec.isa import COMPARISONS, HEADER, INSTRUCTION_BYTES, OPCODES, REGISTERS, UPDATES_EACH, VECTOR_CODES, WAITS, Cause
from spec.memory import ADDRESS_BITS

from .layouts import (BEATS, CAUSE_BITS, beat_layout, doorbell_layout, instruction_layout, own_fields_layout, update_layout)
from .legality import Legality
from .prefetch import Prefetch
from .register_file import RegisterFile
from .retire import Retire, Unit

__all__ = ["OFFSET_SHAPE", "Sequencer", "control_layout"]

OFFSET_SHAPE = signed(34)
"""Of an access pattern's byte offset, its register added."""

control_layout = data.StructLayout({"start": 1, "halt": 1, "resume": 1, "step": 1})
"""What the host can ask of a stream, as the register ``stream_command`` has it."""

_UNITS = {"load_stationary": Unit.LOAD, "multiply_moving": Unit.MULTIPLY,
          **{name: Unit.VECTOR for name, opcode in OPCODES.items() if opcode.code in VECTOR_CODES}}


class Sequencer(wiring.Component):
    """Runs the program of one stream; semantics of ``docs/isa.md``.

    Control instructions are executed here, others are issued to the stream's engine, which accepts or refuses them before
    anything has changed, and says later, in order, when they are done. Meanwhile the stream goes on, with this order kept:
    updates are made in the program's order; a wait is not looked at while an instruction under way will change its
    semaphore; ``dma_start``, and whatever stops the stream, waits until everything before it is done. ``cause`` and
    ``address`` tell of a refusal.

    Latency: an instruction takes 16 cycles to be gathered from its words; a control instruction 5 more, and one for each
    wait that is met. Throughput: the same.

    Parameters
    ----------
    name : str
        The stream, one of ``spec.isa.STREAMS``.

    Members
    -------
    control : In(control_layout)
        Each for one cycle. ``start`` runs from ``start_address`` where the stream stands; ``halt`` stops before the next
        instruction; ``resume`` goes on after a halt; ``step`` executes one instruction.
    start_address : In(40)
        A multiple of an instruction's size.
    breakpoint_enable : In(1), breakpoint_address : In(40)
        Halt before that instruction; ``resume`` and ``step`` pass it.
    running, waiting, cause, address : Out
        Whether it runs, and waits for a semaphore; a :class:`spec.isa.Cause`; where it is, or stopped.
    stopped, failed : Out(1)
        For one cycle, it has stopped without a cause, or with one.
    notify : Out(1)
        For one cycle, an instruction that notifies is done.
    fetch_request : Out(stream of addresses), fetch_response : In(stream of beat_layout)
        See :class:`hdl.control.prefetch.Prefetch`.
    semaphore : Out(8), semaphore_value : In(16)
        The semaphore that is waited for.
    update : Out(stream of update_layout)
    doorbell : Out(stream of doorbell_layout), rings : In(16)
        For ``dma_start``; which rings have a size.
    issue : Out(stream of instruction_layout)
        Holds until ``accepted`` or ``refused``.
    offsets : Out, 3 x OFFSET_SHAPE
        Byte offset of each access pattern, its register added.
    accepted : In(1), refused : In(4)
        The engine's answer to an issued instruction, for one cycle: accepted, or a cause other than 0.
    load_done, multiply_done, vector_done : In(1)
        The engine is done with its oldest instruction of that kind.
    register_number : In(6), register_value : Out(32)
        A look at the registers.
    """

    def __init__(self, name):
        self._name = name
        super().__init__({
            "control": In(control_layout), "start_address": In(ADDRESS_BITS), "breakpoint_enable": In(1),
            "breakpoint_address": In(ADDRESS_BITS), "running": Out(1), "waiting": Out(1), "cause": Out(CAUSE_BITS),
            "address": Out(ADDRESS_BITS), "stopped": Out(1), "failed": Out(1), "notify": Out(1),
            "fetch_request": Out(stream.Signature(ADDRESS_BITS)), "fetch_response": In(stream.Signature(beat_layout)),
            "semaphore": Out(8), "semaphore_value": In(16), "update": Out(stream.Signature(update_layout)),
            "doorbell": Out(stream.Signature(doorbell_layout)), "rings": In(RINGS),
            "issue": Out(stream.Signature(instruction_layout)), "offsets": Out(OFFSET_SHAPE).array(3),
            "accepted": In(1), "refused": In(CAUSE_BITS), "load_done": In(1), "multiply_done": In(1),
            "vector_done": In(1),
            "register_number": In(6), "register_value": Out(32),
        })

    @property
    def module_name(self):
        return f"onc_sequencer_{self._name}"

    def elaborate(self, platform):
        m = Module()
        instruction = Signal(instruction_layout, reset_less=True)
        m.submodules.legality = legality = Legality(self._name)
        m.submodules.prefetch = prefetch = Prefetch()
        m.submodules.retire = retire = Retire()
        address, cause, reason = Signal(ADDRESS_BITS), Signal(CAUSE_BITS), Signal(CAUSE_BITS)
        m.d.comb += [
            legality.i.eq(instruction), self.address.eq(address), self.cause.eq(cause), self.issue.payload.eq(instruction),
            self.fetch_request.payload.eq(prefetch.request.payload), self.fetch_request.valid.eq(prefetch.request.valid),
            prefetch.request.ready.eq(self.fetch_request.ready), prefetch.response.payload.eq(self.fetch_response.payload),
            prefetch.response.valid.eq(self.fetch_response.valid), self.fetch_response.ready.eq(prefetch.response.ready),
            retire.load_done.eq(self.load_done), retire.multiply_done.eq(self.multiply_done),
            retire.vector_done.eq(self.vector_done),
            self.update.payload.eq(retire.update.payload), self.update.valid.eq(retire.update.valid),
            retire.update.ready.eq(self.update.ready), self.notify.eq(retire.notify),
        ]
        fields = self._fields(m, instruction)
        registers, left, right = self._operands(m, instruction, fields)
        no_register, taken = Signal(), self._compares(m, "taken", fields.comparison, left, right)
        m.d.comb += no_register.eq(fields.is_register & ((fields.right < 0) | (fields.right >= REGISTERS)))
        dma = Signal(own_fields_layout("dma_start"))
        m.d.comb += [dma.as_value().eq(instruction.own), self.doorbell.payload.ring.eq(dma.ring),
                     self.doorbell.payload.descriptors.eq(dma.descriptors)]

        slot = Signal(range(WAITS + 1))
        wait = self._wait(m, instruction.header, slot)
        met = self._compares(m, "met", wait.comparison, self.semaphore_value, wait.value)
        m.d.comb += [self.semaphore.eq(wait.semaphore), retire.semaphore.eq(wait.semaphore)]
        beat, halts, passes, one = Signal(range(BEATS)), Signal(), Signal(), Signal()
        with m.If(self.control.halt):
            m.d.sync += halts.eq(1)
        at_breakpoint = self.breakpoint_enable & (address == self.breakpoint_address) & ~passes

        def go(place):
            m.d.sync += address.eq(place)
            m.d.comb += [prefetch.jump.eq(1), prefetch.target.eq(place)]

        def refuse(why):
            m.d.sync += reason.eq(why)
            m.next = "drain"

        def begin(step):
            m.d.sync += [halts.eq(0), one.eq(step), passes.eq(1), slot.eq(0), cause.eq(Cause.NONE), reason.eq(Cause.NONE)]
            m.next = "next"

        with m.FSM() as fsm:
            m.d.comb += [self.running.eq(~(fsm.ongoing("idle") | fsm.ongoing("halted"))), self.waiting.eq(fsm.ongoing("wait"))]
            for state in ("idle", "halted"):
                with m.State(state):
                    with m.If(self.control.start):
                        go(self.start_address)
                        begin(0)
                    if state == "halted":
                        with m.Elif(self.control.resume | self.control.step):
                            begin(~self.control.resume)
            with m.State("next"):
                m.d.sync += [beat.eq(0), slot.eq(0)]
                m.next = "gather"
                with m.If(halts | at_breakpoint | (one & ~passes)):
                    m.next = "pause"
                m.d.sync += passes.eq(0)
            with m.State("pause"):
                with m.If(retire.empty):
                    m.d.comb += self.stopped.eq(1)
                    m.next = "halted"
            with m.State("gather"):
                m.d.comb += prefetch.beats.ready.eq(1)
                with m.If(prefetch.beats.valid):
                    m.d.sync += [instruction.as_value().word_select(beat, 64).eq(prefetch.beats.payload.data),
                                 beat.eq(beat + 1)]
                    with m.If(beat == BEATS - 1):
                        m.next = "check"
                    with m.If(prefetch.beats.payload.error):
                        refuse(Cause.FETCH)
            with m.State("check"):
                m.next = "wait"
                with m.If(legality.cause != Cause.NONE):
                    refuse(legality.cause)
            with m.State("wait"):
                with m.If(~wait.used):
                    m.next = "execute"
                with m.Elif(met & ~retire.pending):
                    m.d.sync += slot.eq(slot + 1)
                with m.Elif(halts & retire.empty):
                    # The host's halt ends a wait; the waits that were met are looked at again.
                    m.d.comb += self.stopped.eq(1)
                    go(address)
                    m.next = "halted"
            with m.State("execute"):
                m.d.sync += address.eq(address + INSTRUCTION_BYTES)
                m.next = "retire"
                with m.Switch(instruction.header.opcode):
                    with m.Case(OPCODES["nop"].code, OPCODES["halt"].code):
                        pass
                    for name, result in (("move", right), ("add", left + right)):
                        with m.Case(OPCODES[name].code):
                            m.d.comb += [registers.write_data.eq(result), registers.write_enable.eq(~no_register)]
                            with m.If(no_register):
                                m.d.sync += address.eq(address)
                                refuse(Cause.ILLEGAL_FIELD)
                    with m.Case(OPCODES["branch"].code):
                        with m.If(no_register | (fields.comparison >= len(COMPARISONS))):
                            m.d.sync += address.eq(address)
                            refuse(Cause.ILLEGAL_FIELD)
                        with m.Elif(taken):
                            go((address + fields.distance * INSTRUCTION_BYTES)[:ADDRESS_BITS])
                    with m.Case(OPCODES["dma_start"].code):
                        with m.If(~retire.empty):
                            m.d.sync += address.eq(address)
                            m.next = "execute"
                        with m.Elif(~self.rings.bit_select(dma.ring, 1)):
                            m.d.sync += address.eq(address)
                            refuse(Cause.ILLEGAL_FIELD)
                        with m.Else():
                            m.d.comb += self.doorbell.valid.eq(1)
                            with m.If(~self.doorbell.ready):
                                m.d.sync += address.eq(address)
                                m.next = "execute"
                    with m.Default():
                        m.d.comb += self.issue.valid.eq(1)
                        m.d.sync += address.eq(address)
                        m.next = "execute"
                        with m.If(self.issue.ready):
                            m.next = "answer"
            with m.State("answer"):
                with m.If(self.refused != Cause.NONE):
                    refuse(self.refused)
                with m.Elif(self.accepted):
                    m.d.sync += address.eq(address + INSTRUCTION_BYTES)
                    m.next = "retire"
            with m.State("retire"):
                m.d.comb += retire.i.valid.eq(1)
                with m.If(retire.i.ready):
                    m.next = "next"
                    with m.If(instruction.header.opcode == OPCODES["halt"].code):
                        m.next = "drain"
            with m.State("drain"):
                with m.If(retire.empty):
                    m.d.comb += [self.stopped.eq(reason == Cause.NONE), self.failed.eq(reason != Cause.NONE)]
                    m.d.sync += cause.eq(reason)
                    m.next = "idle"
        self._entry(m, instruction, retire.i.payload)
        return m

    @staticmethod
    def _entry(m, instruction, entry):
        header = instruction.header
        m.d.comb += entry.notify.eq(header.notify)
        with m.Switch(header.opcode):
            for name, unit in _UNITS.items():
                with m.Case(OPCODES[name].code):
                    m.d.comb += entry.unit.eq(unit)
        for index in range(UPDATES_EACH):
            update = entry.updates[index]
            m.d.comb += [update.used.eq(header[f"update{index}_used"]),
                         *(update.change[name].eq(header[f"update{index}_{name}"]) for name in ("semaphore", "kind", "value"))]

    @staticmethod
    def _wait(m, header, number):
        """One of the header's waits; behind the last there is one that is not used."""
        names = [name.removeprefix("wait0_") for name, _, _ in HEADER if name.startswith("wait0_")]
        wait = Signal(data.StructLayout({name: header[f"wait0_{name}"].shape() for name in names}), name="wait")
        with m.Switch(number):
            for index in range(WAITS):
                with m.Case(index):
                    m.d.comb += [wait[name].eq(header[f"wait{index}_{name}"]) for name in names]
        return wait

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
