"""Random programs whose result does not depend on timing: every conflict between streams or rings is kept by a semaphore."""

from dataclasses import dataclass, field, replace

import numpy as np

from spec.dma import DESCRIPTOR_BYTES, RINGS, Side, Transfer, encode_transfer
from spec.errors import SpecError
from spec.formats import FORMATS
from spec.isa import INSTRUCTION_BYTES, OPCODES, STREAMS, Access, Instruction, Update, Wait, encode
from spec.memory import local_address
from spec.tensor import Matmul, check_matmul, check_transpose

from .random_vector import VECTOR_INSTRUCTIONS, VectorGenerator

__all__ = ["DATA_BYTES", "LoweredProgram", "Operation", "lower", "random_operations", "random_vector_generator"]

DATA_BYTES = 1 << 15
"""Bytes of memory that transfers use."""
_STREAM_BYTES = 128 * INSTRUCTION_BYTES
_RING_BYTES = 64 * DESCRIPTOR_BYTES
_DATA = len(STREAMS) * _STREAM_BYTES + RINGS * _RING_BYTES
_INDEX_REGISTERS = range(32, 48)
_MOST_ELEMENTS = 160
_WINDOW = 512  # bytes of a partition in which most operands lie, so that they meet
_ATTEMPTS = 200


@dataclass
class Operation:
    """One thing that a program does.

    Parameters
    ----------
    stream : str
        That does it, or starts it.
    instruction : Instruction or None
        Without waits and updates; None for a transfer.
    transfer : Transfer or None
        Without its update.
    ring : int or None
        Of a transfer.
    before : tuple of Instruction
        What the stream does first: registers that the instruction uses, and what just passes the time.
    reads, writes : dict of str to int array
        Places by memory; memory itself by byte, the state buffer by byte, the partial-sum buffer by word, and the partial-sum
        buffer's banks that must have been written.
    """

    stream: str
    instruction: Instruction | None = None
    transfer: Transfer | None = None
    ring: int | None = None
    before: tuple = ()
    reads: dict = field(default_factory=dict)
    writes: dict = field(default_factory=dict)


@dataclass(frozen=True)
class LoweredProgram:
    """What :func:`lower` makes.

    Parameters
    ----------
    streams : dict of str to tuple of Instruction
    descriptors : dict of int to tuple of Transfer
        By ring.
    addresses : dict
        Where each stream's program and each ring's descriptors are.
    data : int
        Where the data begins.
    size : int
        Of memory, in bytes.
    """

    streams: dict
    descriptors: dict
    addresses: dict
    data: int
    size: int

    def write(self, memory):
        """Programs and descriptors into a memory, a bytearray or a uint8 array."""
        for name, instructions in self.streams.items():
            _put(memory, self.addresses[name], b"".join(map(encode, instructions)))
        for ring, transfers in self.descriptors.items():
            _put(memory, self.addresses[ring], b"".join(map(encode_transfer, transfers)))


def _put(memory, at, content):
    memory[at:at + len(content)] = content if isinstance(memory, bytearray) else np.frombuffer(content, np.uint8)


def _positions(dims):
    """Where elements are, relative to the first one, the fastest pair innermost."""
    places = np.zeros(1, np.int64)
    for step, count in dims:
        places = (np.arange(count, dtype=np.int64)[:, None] * step + places).ravel()
    return places


def _factors(rng, count, parts):
    """``count`` as a product of so many numbers, at random."""
    factors = []
    for _ in range(parts - 1):
        choices = [number for number in range(1, count + 1) if count % number == 0]
        factors.append(int(rng.choice(choices)))
        count //= factors[-1]
    return [*factors, count]


class _Generator:
    def __init__(self, core, rng):
        self.core, self.rng = core, rng
        self.weights = None
        self.written = {}
        self.reach = core.sbuf_bytes if self.chance(0.1) else min(_WINDOW, core.sbuf_bytes)
        self.vector = VectorGenerator(core, rng, lambda name, count: self._pattern(name, count, paired=False),
                                      lambda: sorted(self.written))
        self.streams_of_rings = {ring: str(rng.choice(STREAMS)) for ring in range(RINGS)}

    def chance(self, share):
        return self.rng.random() < share

    def operation(self):
        kinds = {"transfer": 0.4, "load": 0.1, "multiply": 0.2 if self.weights else 0.0, "vector": 0.3}
        kind = str(self.rng.choice(list(kinds), p=np.array(list(kinds.values())) / sum(kinds.values())))
        for _ in range(_ATTEMPTS):
            operation = getattr(self, f"_{kind}")()
            if operation is not None:
                return replace(operation, before=(*self._pastime(operation.stream), *operation.before))
        raise RuntimeError(f"No legal {kind} in {_ATTEMPTS} attempts")

    def fill(self):
        """Random bytes for the part of the state buffer that operands lie in."""
        core, ring, name = self.core, int(self.rng.integers(RINGS)), "fp8_e4m3"
        length = min(self.reach, DATA_BYTES // core.rows)
        rows, places = np.arange(core.rows)[:, None], np.arange(length)
        source = Side("memory", name, _DATA, ((1, length), (length, core.rows)))
        target = Side("sbuf", name, 0, ((1, length), (local_address(1, 0), core.rows)))
        return Operation(self.streams_of_rings[ring], transfer=Transfer(source, target), ring=ring,
                         reads={"memory": _DATA + np.arange(length * core.rows)},
                         writes={"sbuf": (rows * core.sbuf_bytes + places).ravel()})

    # -- tensor instructions --

    def _pattern(self, name, count, paired):
        """(step, count) pairs of ``count`` elements, in elements, and the offset of the first in bytes; None where it fails."""
        rng, size = self.rng, FORMATS[name].width // 8
        counts = _factors(rng, count, int(rng.integers(1, 4)))
        dims = [(1, counts[0]) if self.chance(0.6) else (int(rng.integers(-9, 10)), counts[0])]
        dims += [(int(rng.integers(-40, 41)), number) for number in counts[1:]]
        if paired:
            dims += [(0, 1)] * (3 - len(dims)) + [(int(rng.choice([1, count, rng.integers(-30, 31)])), 2)]
        places = size * _positions(dims)
        room = self.reach - size - (places.max() - places.min())
        if room < 0:
            return None
        offset = size * int(rng.integers(0, room // size + 1)) - int(places.min())
        return tuple(dims), offset, places + offset

    def _operand(self, name, partitions, count, paired):
        made = self._pattern(name, count, paired)
        if made is None:
            return None
        dims, offset, places = made
        register, before = None, ()
        if self.chance(0.3):
            register, base = int(self.rng.choice(_INDEX_REGISTERS)), int(self.rng.integers(0, self.core.sbuf_bytes))
            before = (Instruction("move", {}, {"target": register, "is_register": 0, "right": offset - base}),)
            offset = base
        access = Access("sbuf", name, *partitions, offset, dims, register)
        size = FORMATS[name].width // 8
        rows = np.arange(partitions[0], partitions[0] + partitions[1])
        touched = (rows[:, None, None] * self.core.sbuf_bytes + places[:, None] + np.arange(size)).ravel()
        return access, before, touched

    def _load(self):
        core, rng = self.core, self.rng
        name = str(rng.choice(core.formats))
        paired = name in core.pair_formats and (name == "int8" or self.chance(0.5))
        transpose = not paired and core.transpose and (name == "int8" or self.chance(0.2))
        if name == "int8" and not paired and not transpose:
            return None
        first = core.quadrant * int(rng.integers(0, core.rows // core.quadrant))
        partitions = first, int(rng.integers(1, core.rows - first + 1))
        columns = int(rng.integers(1, core.cols + 1))
        made = self._operand(name, partitions, columns, paired)
        if made is None:
            return None
        access, before, touched = made
        if transpose and not _is_allowed(check_transpose, core, name):
            return None
        fields = {"paired": int(paired), "odd": int(paired and self.chance(0.3)), "transpose": int(transpose)}
        self.weights = access, fields, columns
        return Operation("tensor", Instruction("load_stationary", {"stationary": access}, fields), before=before,
                         reads={"sbuf": touched})

    def _multiply(self):
        core, rng = self.core, self.rng
        stationary, fields, columns = self.weights
        paired = bool(fields["paired"])
        if fields["transpose"]:
            partners, most = core.formats, stationary.partitions
        else:
            partners = [name for name in core.formats
                        if _is_allowed(check_matmul, core, Matmul(stationary.format, name, paired))]
            most = min(24, core.psum_bank_words)
        count = int(rng.integers(1, most + 1))
        made = self._operand(str(rng.choice(partners)), (stationary.partition, stationary.partitions), count, paired)
        if made is None:
            return None
        access, before, touched = made
        bank = int(rng.integers(core.psum_banks))
        word = int(rng.integers(0, min(48, core.psum_bank_words - count + 1)))
        adds = bank in self.written and not fields["transpose"] and self.chance(0.5)
        name = "int32" if stationary.format == "int8" else "fp32"
        result = Access("psum", name, 0, columns, bank * core.psum_bank_bytes + 4 * word, ((1, count),))
        words = core.psum_banks * core.psum_bank_words
        place = bank * core.psum_bank_words + word
        targets = (np.arange(columns)[:, None] * words + place + np.arange(count)).ravel()
        self.written.setdefault(bank, True)
        instruction = Instruction("multiply_moving", {"moving": access, "result": result}, {"accumulate": int(adds)},
                                  count_special=self.chance(0.5))
        return Operation("tensor", instruction, before=before, reads={"sbuf": touched},
                         writes={"psum": targets, "banks": np.array([bank])})

    # -- vector instructions --

    def _vector(self):
        rng = self.rng
        name = str(rng.choice(VECTOR_INSTRUCTIONS))
        made = self.vector.draw(name)
        if made is None:
            return None
        instruction, reads, writes = made
        for bank in writes.get("banks", ()):
            self.written[int(bank)] = True
        return Operation(str(rng.choice(OPCODES[name].streams)), instruction, reads=reads, writes=writes)

    # -- transfers --

    def _side(self, space, name, count):
        """A side of ``count`` elements, and the places it touches; None where it does not fit."""
        core, rng, size = self.core, self.rng, FORMATS[name].width // 8
        counts = _factors(rng, count, int(rng.integers(1, 5)))
        if space == "memory":
            steps = [size] if self.chance(0.6) else [size * int(rng.integers(-20, 21))]
            steps += [size * int(rng.integers(-90, 91)) for _ in counts[1:]]
            places = _positions(list(zip(steps, counts)))
            room = DATA_BYTES - size - int(places.max() - places.min())
            if room < 0:
                return None
            first = _DATA + size * int(rng.integers(0, room // size + 1)) - int(places.min())
            touched = (places[:, None] + first + np.arange(size)).ravel()
            return Side(space, name, first, tuple(zip(steps, counts))), touched
        partitions, length = ((core.rows, self.reach) if space == "sbuf"
                              else (core.cols, core.psum_banks * core.psum_bank_bytes))
        across = [number <= partitions and self.chance(0.4) for number in counts]
        along = [0 if away else size * (1 if index == 0 and self.chance(0.7) else int(rng.integers(-30, 31)))
                 for index, away in enumerate(across)]
        away = [int(rng.choice([-1, 1, 1, 2])) if flag else 0 for flag in across]
        offsets, rows = _positions(list(zip(along, counts))), _positions(list(zip(away, counts)))
        room, spare = length - size - int(np.ptp(offsets)), partitions - 1 - int(np.ptp(rows))
        if room < 0 or spare < 0:
            return None
        offset = size * int(rng.integers(0, room // size + 1)) - int(offsets.min())
        row = int(rng.integers(0, spare + 1)) - int(rows.min())
        steps = [local_address(turn, 0) if flag else step for flag, turn, step in zip(across, away, along)]
        places = (rows + row) * (core.sbuf_bytes if space == "sbuf" else length) + offsets + offset
        touched = places // 4 if space == "psum" else (places[:, None] + np.arange(size)).ravel()
        return Side(space, name, local_address(row, offset), tuple(zip(steps, counts))), touched

    def _transfer(self):
        rng = self.rng
        source_space = str(rng.choice(["memory", "sbuf", "psum"], p=[0.5, 0.25, 0.25] if self.written else [0.65, 0.35, 0]))
        target_space = str(rng.choice(["memory", "sbuf"]))
        names = list(FORMATS)
        source_name = str(rng.choice(["fp32", "int32"] if source_space == "psum" else names))
        accumulate = self.chance(0.15)
        target_name = "fp32" if accumulate else source_name if self.chance(0.6) else str(rng.choice(names))
        count = int(rng.integers(1, 24 if accumulate else _MOST_ELEMENTS))
        source, target = self._side(source_space, source_name, count), self._side(target_space, target_name, count)
        if source is None or target is None:
            return None
        (source, read), (target, written) = source, target
        if len(np.unique(written)) != len(written):
            return None
        if source_space == target_space and len(np.intersect1d(read, written)):
            return None
        reads = {source_space: read}
        if source_space == "psum":
            banks = read % (self.core.psum_banks * self.core.psum_bank_words) // self.core.psum_bank_words
            reads["banks"] = np.arange(banks.min(), banks.max() + 1)
            if not set(reads["banks"]) <= set(self.written):
                return None
        if accumulate:
            reads[target_space] = np.concatenate([reads.get(target_space, np.zeros(0, np.int64)), written])
        ring = int(rng.integers(RINGS))
        transfer = Transfer(source, target, accumulate=accumulate, saturate=self.chance(0.3), notify=self.chance(0.2))
        return Operation(self.streams_of_rings[ring], transfer=transfer, ring=ring, reads=reads, writes={target_space: written})

    # -- what passes the time --

    def _pastime(self, stream):
        """Control instructions without effect on anybody else: arithmetic, a skipped instruction, a loop."""
        rng = self.rng
        if not self.chance(0.35):
            return ()
        target, value = int(rng.integers(8)), int(rng.integers(-2**31, 2**31))
        add = Instruction("add", {}, {"target": target, "left": int(rng.integers(8)), "is_register": 1,
                                      "right": int(rng.integers(8))})
        move = Instruction("move", {}, {"target": target, "is_register": 0, "right": value})
        if self.chance(0.4):
            branch = Instruction("branch", {}, {"left": int(rng.integers(8)), "comparison": int(rng.integers(6)),
                                                "is_register": 0, "right": value, "distance": 2})
            return branch, move, add
        if self.chance(0.4):
            counter = 9
            return (Instruction("move", {}, {"target": counter, "is_register": 0, "right": int(rng.integers(1, 4))}), add,
                    Instruction("add", {}, {"target": counter, "left": counter, "is_register": 0, "right": -1}),
                    Instruction("branch", {}, {"left": counter, "comparison": 4, "is_register": 0, "right": 0,
                                               "distance": -2}))
        return move, add


def _is_allowed(check, core, subject):
    try:
        check(core, subject)
    except SpecError:
        return False
    return True


def random_vector_generator(core, rng):
    """A :class:`sim.random_vector.VectorGenerator` whose operands lie anywhere, and for which every bank was written to."""
    generator = _Generator(core, rng)
    generator.written = dict.fromkeys(range(core.psum_banks), True)
    return generator.vector


def random_operations(core, rng, count):
    """So many operations for a core, at least 1, each legal when those before it are done."""
    generator = _Generator(core, rng)
    return [generator.fill(), *(generator.operation() for _ in range(count - 1))]


def _conflicts(earlier, later):
    def overlap(one, other):
        return any(name in other and len(np.intersect1d(places, other[name])) for name, places in one.items())
    return overlap(earlier.writes, later.reads) or overlap(earlier.writes, later.writes) or overlap(earlier.reads, later.writes)


def _in_order_anyway(earlier, later):
    """Whether the order of two operations needs no semaphore: one stream does both, or one ring; a stream starts no ring
    before its own instructions are done."""
    if earlier.transfer:
        return later.transfer is not None and later.ring == earlier.ring
    return later.stream == earlier.stream


def lower(operations, serial=False):
    """Programs and descriptors of a list of operations.

    Operation i changes semaphore i when done, to 1; others that conflict with it wait for that. With ``serial`` each waits
    for the one before, whether they conflict or not.

    Returns
    -------
    LoweredProgram
    """
    streams, descriptors = {name: [] for name in STREAMS}, {}
    for number, operation in enumerate(operations):
        needed = [index for index, earlier in enumerate(operations[:number])
                  if (serial and index == number - 1)
                  or (_conflicts(earlier, operation) and not _in_order_anyway(earlier, operation))]
        waits = [Wait(index, (">=", "==", "!=")[index % 3], (1, 1, 0)[index % 3]) for index in needed]
        update, own = Update(number, ("=", "+=")[number % 2], 1), streams[operation.stream]
        own += operation.before
        while len(waits) > 3:
            own.append(Instruction("nop", waits=tuple(waits[:3])))
            waits = waits[3:]
        if operation.transfer:
            descriptors.setdefault(operation.ring, []).append(replace(operation.transfer, update=update))
            own.append(Instruction("dma_start", {}, {"ring": operation.ring, "descriptors": 1}, waits=tuple(waits)))
        else:
            own.append(replace(operation.instruction, waits=tuple(waits), updates=(update,)))
    for own in streams.values():
        own.append(Instruction("halt", notify=True))
    addresses = {name: index * _STREAM_BYTES for index, name in enumerate(STREAMS)}
    addresses |= {ring: len(STREAMS) * _STREAM_BYTES + ring * _RING_BYTES for ring in range(RINGS)}
    return LoweredProgram({name: tuple(own) for name, own in streams.items()},
                          {ring: tuple(own) for ring, own in descriptors.items()}, addresses, _DATA, _DATA + DATA_BYTES)
