"""A core that executes programs: instruction streams, semaphores, memories, to the bit; timing is not modelled."""

from dataclasses import dataclass
from math import prod

import numpy as np

from spec.errors import SpecError
from spec.dma import MOST_PENDING
from spec.isa import COMPARISONS, DIMENSIONS, INSTRUCTION_BYTES, OPCODES, REGISTERS, SEMAPHORES, STREAMS, Cause, decode
from spec.tensor import Matmul, check_matmul, check_transpose

from .dma import Rings, execute_transfer, fetch_transfer
from .memory import Memories, Refused
from .tensor import accumulate, matmul, transpose
from .vector_instructions import VECTOR_INSTRUCTIONS, execute_vector

__all__ = ["Blocked", "Core", "Failure", "OutOfInstructions"]

_COMPARE = {"==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
            "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}


@dataclass(frozen=True)
class Failure:
    """What the error register of a stream or a ring holds: the cause, the address of the instruction or descriptor, and words
    for people."""

    cause: Cause
    address: int
    detail: str


@dataclass(frozen=True)
class Blocked:
    """A stream that waits for a semaphore that nothing will change: the first of ``waits`` is not met, the others were not
    looked at; ``values`` is what the semaphores hold."""

    stream: str
    address: int
    waits: tuple
    values: tuple


class OutOfInstructions(RuntimeError):
    """A run did not end within its limit of instructions."""


class _Registers:
    def __init__(self):
        self.values = [0] * REGISTERS

    def signed(self, number):
        value = self.values[number]
        return value - (1 << 32) if value >> 31 else value

    def right(self, fields):
        """The right side of a control instruction, signed."""
        if not fields["is_register"]:
            return fields["right"]
        if not 0 <= fields["right"] < REGISTERS:
            raise Refused(Cause.ILLEGAL_FIELD, f"register {fields['right']} of {REGISTERS}")
        return self.signed(fields["right"])

    def write(self, number, value):
        self.values[number] = value & 0xFFFF_FFFF


class _Stream:
    """One instruction stream."""

    def __init__(self, name):
        self.name, self.registers = name, _Registers()
        self.address, self.running, self.failure = 0, False, None
        self.met = 0  # waits of the next instruction that were met


class Core:
    """Five instruction streams and sixteen descriptor rings over one set of memories and semaphores.

    Instructions of different streams, and descriptors of different rings, are executed in an order that respects the
    semaphores and nothing else; a correct program gives the same result in every such order.

    Parameters
    ----------
    core : spec.config.CoreConfig
    memory : bytearray
        What programs and descriptors are fetched from, and transfers move.
    faulty : list of (int, int)
        First and end of ranges of bytes that memory answers with an error.

    Attributes
    ----------
    memories : golden.memory.Memories
    semaphores : list of int
    interrupts : int
        How often ``notify`` was executed.
    special : int
        Results that were NaN or infinite, of instructions that count them.
    bytes_read, bytes_written : int
        Bytes of elements that transfers moved from and to memory.
    rings : golden.dma.Rings
    streams : dict
        By name: ``address``, ``running``, ``failure`` (a :class:`Failure` or None), ``registers``.
    """

    def __init__(self, core, memory, faulty=()):
        self.core, self.memory, self.faulty = core, memory, list(faulty)
        self.memories = Memories(core)
        self.reset()

    def reset(self):
        """Streams stop, rings have no size, registers, semaphores and weights are cleared; the memories keep their contents."""
        self.semaphores = [0] * SEMAPHORES
        self.interrupts = self.special = self.bytes_read = self.bytes_written = 0
        self.rings = Rings()
        self.streams = {name: _Stream(name) for name in STREAMS}
        self.memories.written[:] = False
        self.memories.random.reset()
        self._weights = None

    def start(self, stream, address):
        """Let a stream run from an address.

        Raises
        ------
        SpecError
            No such stream, or an address that is not a multiple of an instruction's size.
        """
        if stream not in self.streams:
            raise SpecError("stream", stream, ", ".join(STREAMS))
        if address % INSTRUCTION_BYTES or address < 0:
            raise SpecError("address", address, f"a multiple of {INSTRUCTION_BYTES} from 0")
        state = self.streams[stream]
        state.address, state.running, state.failure, state.met = address, True, None, 0

    def set_ring(self, ring, base, size):
        """Where a ring's descriptors are, and how many; takes it back to the first one.

        Raises
        ------
        SpecError
            No such ring, a base that is not a multiple of 128, or a size beyond 65,535.
        """
        self.rings.place(ring, base, size)

    def ring_doorbell(self, ring, count):
        """Let a ring take so many descriptors more."""
        self.rings.check(ring)
        if not 0 <= count <= MOST_PENDING:
            raise SpecError("count", count, f"0 to {MOST_PENDING}")
        self.rings[ring].add(count)

    def add_semaphore(self, number, value):
        """What the host adds to a semaphore."""
        if not 0 <= number < SEMAPHORES:
            raise SpecError("semaphore", number, f"0 to {SEMAPHORES - 1}")
        self.semaphores[number] = self.semaphores[number] + value & 0xFFFF

    @property
    def failures(self):
        """What stopped with a cause, by the stream's name or ``ring <number>``: a :class:`Failure`."""
        failures = {name: stream.failure for name, stream in self.streams.items() if stream.failure}
        return failures | {f"ring {number}": ring.failure for number, ring in enumerate(self.rings) if ring.failure}

    def run(self, limit=1_000_000):
        """Execute until no stream and no ring can go on.

        Returns
        -------
        list of Blocked
            Streams that wait for ever; empty where all halted or failed.

        Raises
        ------
        OutOfInstructions
            More than ``limit`` instructions and descriptors.
        """
        executed = 0
        while True:
            progress = False
            for stream in self.streams.values():
                while stream.running and self._step(stream):
                    progress, executed = True, executed + 1
                    if executed > limit:
                        raise OutOfInstructions(f"More than {limit} instructions; stream {stream.name} is at address "
                                                f"{stream.address:#x}")
            for ring in self.rings:
                if ring.pending and not ring.failure:
                    self._carry_out(ring)
                    progress, executed = True, executed + 1
            if not progress:
                return [self._blocked(stream) for stream in self.streams.values() if stream.running]

    def _fetch(self, stream):
        first, end = stream.address, stream.address + INSTRUCTION_BYTES
        content = bytes(self.memory[first:end])
        faulty = any(first < stop and begin < end for begin, stop in self.faulty)
        if first < 0 or len(content) != INSTRUCTION_BYTES or faulty:
            raise Refused(Cause.FETCH, f"no memory at {stream.address:#x}")
        try:
            instruction = decode(content)
        except SpecError as error:
            raise Refused(error.cause, str(error)) from None
        if stream.name not in OPCODES[instruction.opcode].streams:
            raise Refused(Cause.ILLEGAL_OPCODE, f"{instruction.opcode} on the {stream.name} stream")
        return instruction

    def _is_met(self, wait):
        return _COMPARE[wait.comparison](self.semaphores[wait.semaphore], wait.value)

    def _blocked(self, stream):
        waits = self._fetch(stream).waits[stream.met:]
        return Blocked(stream.name, stream.address, waits, tuple(self.semaphores[wait.semaphore] for wait in waits))

    def _step(self, stream):
        """Execute a stream's next instruction; False where it waits or has stopped."""
        try:
            instruction = self._fetch(stream)
            while stream.met < len(instruction.waits) and self._is_met(instruction.waits[stream.met]):
                stream.met += 1
            if stream.met < len(instruction.waits):
                return False
            target = None
            if instruction.opcode in VECTOR_INSTRUCTIONS:
                self.special += execute_vector(self.memories, instruction, stream.registers)
            else:
                target = getattr(self, f"_{instruction.opcode}")(stream, instruction)
        except Refused as refused:
            stream.running = False
            stream.failure = Failure(refused.cause, stream.address, refused.detail)
            return False
        self._finish(instruction.updates, instruction.notify)
        stream.address, stream.met = stream.address + INSTRUCTION_BYTES if target is None else target, 0
        return True

    def _finish(self, updates, notify):
        for update in updates:
            old = self.semaphores[update.semaphore]
            new = {"=": update.value, "+=": old + update.value, "-=": old - update.value}[update.kind]
            self.semaphores[update.semaphore] = new & 0xFFFF
        self.interrupts += notify

    def _carry_out(self, ring):
        """A ring's next descriptor."""
        try:
            transfer = fetch_transfer(self, ring)
            execute_transfer(self, transfer)
        except Refused as refused:
            ring.failure = Failure(refused.cause, ring.address, refused.detail)
            return
        self._finish([transfer.update] if transfer.update else [], transfer.notify)
        ring.advance()

    def _nop(self, stream, instruction):
        pass

    def _halt(self, stream, instruction):
        stream.running = False

    def _move(self, stream, instruction):
        fields = instruction.fields
        stream.registers.write(fields["target"], stream.registers.right(fields))

    def _add(self, stream, instruction):
        fields, registers = instruction.fields, stream.registers
        registers.write(fields["target"], registers.signed(fields["left"]) + registers.right(fields))

    def _branch(self, stream, instruction):
        fields, registers = instruction.fields, stream.registers
        if fields["comparison"] >= len(COMPARISONS):
            raise Refused(Cause.ILLEGAL_FIELD, f"comparison {fields['comparison']}")
        if _COMPARE[COMPARISONS[fields["comparison"]]](registers.signed(fields["left"]), registers.right(fields)):
            return stream.address + INSTRUCTION_BYTES * fields["distance"]
        return None

    def _operand(self, stream, access, paired):
        """Elements of a tensor operand: ``[partitions, columns]``, or the first and the second of each pair."""
        if access.space != "sbuf" or access.format not in self.core.formats:
            raise Refused(Cause.ILLEGAL_FIELD, f"{access.format} in {access.space} as an operand of the tensor engine")
        self.memories.check_elements(access, stream.registers)
        if paired and (len(access.dims) < DIMENSIONS or access.dims[-1][1] != 2):
            raise Refused(Cause.ILLEGAL_FIELD, "in pairs the last (step, count) leads to the partner, and counts 2")
        if prod(count for _, count in access.dims) > 2 * MOST_PENDING:
            raise Refused(Cause.ILLEGAL_FIELD, "more elements than any operand has")
        elements = self.memories.elements(access, stream.registers)
        return np.split(elements, 2, axis=1) if paired else elements

    def _load_stationary(self, stream, instruction):
        access, fields = instruction.accesses["stationary"], instruction.fields
        paired = bool(fields["paired"])
        elements = self._operand(stream, access, paired)
        columns = (elements[0] if paired else elements).shape[1]
        if columns > self.core.cols:
            raise Refused(Cause.ILLEGAL_FIELD, f"{columns} columns of {self.core.cols}")
        if fields["odd"] and not paired:
            raise Refused(Cause.ILLEGAL_FIELD, "odd without paired")
        if fields["transpose"]:
            if paired:
                raise Refused(Cause.ILLEGAL_FIELD, "transpose in pairs")
            self._check(check_transpose, access.format)
        self._weights = access, fields, elements.copy() if not paired else [half.copy() for half in elements]

    def _multiply_moving(self, stream, instruction):
        if self._weights is None:
            raise Refused(Cause.ILLEGAL_FIELD, "no weights were loaded")
        stationary, load, weights = self._weights
        access, result = instruction.accesses["moving"], instruction.accesses["result"]
        if (access.partition, access.partitions) != (stationary.partition, stationary.partitions):
            raise Refused(Cause.ILLEGAL_FIELD, "moving and stationary are not in the same partitions")
        paired, adds = bool(load["paired"]), bool(instruction.fields["accumulate"])
        form = Matmul(stationary.format, access.format, paired)
        moving = self._operand(stream, access, paired)
        count = (moving[0] if paired else moving).shape[1]
        columns = (weights[0] if paired else weights).shape[1]
        if load["transpose"]:
            if adds or count > stationary.partitions:
                raise Refused(Cause.ILLEGAL_FIELD, "a transpose that accumulates, or of more words than partitions")
            sums = transpose(weights)[:, :count]
        else:
            self._check(check_matmul, form)
            sums = matmul(self._joined(weights, load), self._joined(moving, load), form)
        bank, words = self._result(stream, result, columns, count, "int32" if form.is_integer else "fp32")
        target = self.memories.psum[:columns, words]
        if adds:
            if not self.memories.written[bank]:
                raise Refused(Cause.BANK_INVALID, f"accumulating onto bank {bank}, which nothing was written to")
            sums = accumulate(target, sums, form.is_integer)
        target[:] = sums
        self.memories.written[bank] = True
        if instruction.count_special and not (form.is_integer or load["transpose"]):
            self.special += int(((sums >> 23 & 0xFF) == 0xFF).sum())

    def _result(self, stream, access, columns, count, format_name):
        if access.space != "psum" or access.format != format_name:
            raise Refused(Cause.ILLEGAL_FIELD, f"a result in {access.space} as {access.format}, not psum as {format_name}")
        bank, words = self.memories.bank_words(access, stream.registers)
        if access.partition or access.partitions != columns or words.stop - words.start != count:
            raise Refused(Cause.ILLEGAL_FIELD, f"a result of {access.partitions} x {words.stop - words.start} from partition "
                                               f"{access.partition}, not {columns} x {count} from 0")
        return bank, words

    @staticmethod
    def _joined(elements, load):
        """All elements of the contraction, in pairs the first ones before the second ones."""
        if not load["paired"]:
            return elements
        first, second = elements
        return np.concatenate([first, second[:len(second) - load["odd"]]])

    def _check(self, check, subject):
        try:
            check(self.core, subject)
        except SpecError as error:
            raise Refused(Cause.ILLEGAL_FIELD, str(error)) from None

    def _dma_start(self, stream, instruction):
        ring = self.rings[instruction.fields["ring"]]
        if not ring.size:
            raise Refused(Cause.ILLEGAL_FIELD, f"ring {instruction.fields['ring']} has no size")
        ring.add(instruction.fields["descriptors"])
