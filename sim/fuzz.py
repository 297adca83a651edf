"""``python -m sim.fuzz [PROGRAMS=…] [SEED=…] [CONFIG=…]``: random programs on the RTL core and the golden one."""

import time
from dataclasses import dataclass

import numpy as np

from golden.core import Core, OutOfInstructions
from golden.dma import check_transfer, element_places
from golden.memory import Refused
from spec.assembly import assemble, disassemble
from spec.dma import DESCRIPTOR, decode_transfer
from spec.errors import SpecError
from spec.formats import FORMATS
from spec.isa import HEADER, HEADER_BITS, INSTRUCTION_BYTES, OPCODES, PATTERN_BITS, PATTERNS, STREAMS, Cause

from .command import run_command, selected_system
from .core import CoreDriver, build_core
from .errors import SimulationError
from .progress import progress_bar
from .random_programs import lower, random_operations
from .report import publish

__all__ = ["Case", "Fuzzer", "main"]

_MOST_OPERATIONS = 24
_MOST_INSTRUCTIONS, _MOST_CYCLES = 2000, 400_000
_MOST_ELEMENTS = 2000
_FAULT = 128


@dataclass(frozen=True)
class Case:
    """A program with the surroundings that it runs in.

    Parameters
    ----------
    program : sim.random_programs.LoweredProgram
    content : bytes
        All of memory at the start.
    faulty : list of (int, int)
        Ranges of faulty bytes.
    timing : dict
        Of memory, as :class:`sim.memory.Memory` takes it.
    """

    program: object
    content: bytes
    faulty: list
    timing: dict

    def text(self):
        """The program as assembly, and its descriptors."""
        lines = []
        for name, at in self.program.addresses.items():
            held = self.program.streams.get(name) or self.program.descriptors.get(name)
            if not held:
                continue
            lines.append(f"{name if name in STREAMS else f'ring {name}'} at {at:#x}:")
            size = INSTRUCTION_BYTES
            for index in range(len(held)):
                content = self.content[at + size * index:at + size * (index + 1)]
                try:
                    lines.append("    " + (disassemble(content).strip() if name in STREAMS else str(decode_transfer(content))))
                except SpecError:
                    lines.append(f"    illegal: {content.hex()}")
        return "\n".join([*lines, f"faulty: {self.faulty}", f"memory: {self.timing}"])


class Fuzzer:
    """Makes random cases for a core, runs them on both, and compares.

    Parameters
    ----------
    core : spec.config.CoreConfig
    model : sim.model.Model
        Of ``NeuronCore(core)``; built if not given.
    """

    def __init__(self, core, model=None):
        self.core, self.model = core, model or build_core(core)
        # The memories keep their contents from one program to the next, in both.
        self._memories = Core(core, bytearray()).memories
        self._fresh = True

    def case(self, seed, illegal=False, keep=None):
        """The case of a seed; with ``keep`` of only those of its operations."""
        rng = np.random.default_rng([seed, int(illegal)])
        operations = random_operations(self.core, rng, int(rng.integers(3, _MOST_OPERATIONS)))
        timing = {"latency": tuple(map(int, sorted(rng.integers(1, 40, 2)))), "stall": float(rng.choice([0, 0.1, 0.4])),
                  "reorder": bool(rng.random() < 0.7), "seed": seed}
        program = lower(operations if keep is None else [operations[index] for index in keep], serial=illegal)
        content = rng.integers(0, 256, program.size, np.uint8)
        content[:program.data] = 0xFF  # a stream that runs past its end finds nothing legal
        program.write(content)
        faulty = []
        if rng.random() < 0.25:
            first = self._fault(rng, program)
            faulty = [(first, first + _FAULT * int(rng.integers(1, 4)))]
        if illegal:
            for _ in range(int(rng.integers(1, 4))):
                self._corrupt(rng, program, content)
        return Case(program, content.tobytes(), faulty, timing)

    @staticmethod
    def _fault(rng, program):
        """Where bytes are faulty: mostly where a transfer reads or writes."""
        sides = [side.address for own in program.descriptors.values() for transfer in own
                 for side in (transfer.source, transfer.destination) if side.space == "memory"]
        at = int(rng.choice(sides)) if sides and rng.random() < 0.8 else int(rng.integers(program.size))
        return at // _FAULT * _FAULT

    def operations_of(self, seed, illegal=False):
        """How many operations the case of a seed has."""
        rng = np.random.default_rng([seed, int(illegal)])
        return len(random_operations(self.core, rng, int(rng.integers(3, _MOST_OPERATIONS))))

    # -- illegal programs --

    def _corrupt(self, rng, program, content):
        """Flip a bit of an instruction or a descriptor, so that the program's result still does not depend on timing."""
        places = [(name, index) for name, held in {**program.streams, **program.descriptors}.items()
                  for index in range(len(held))]
        for _ in range(100):
            name, index = places[int(rng.integers(len(places)))]
            at = program.addresses[name] + INSTRUCTION_BYTES * index
            used_only = rng.random() < 0.9
            bits = (_instruction_bits(program.streams[name][index], used_only) if name in STREAMS
                    else _descriptor_bits(used_only))
            bit = int(rng.choice(bits))
            changed = content[at:at + INSTRUCTION_BYTES].copy()
            changed[bit // 8] ^= 1 << bit % 8
            if name in STREAMS or self._is_well_defined(bytes(changed), program):
                content[at:at + INSTRUCTION_BYTES] = changed
                return

    def _is_well_defined(self, content, program):
        """Whether a descriptor is refused, or has a result that is defined and leaves the programs alone."""
        memories = Core(self.core, bytearray()).memories
        memories.written[:] = True
        try:
            transfer = decode_transfer(content)
            check_transfer(memories, transfer)
        except (SpecError, Refused):
            return True
        count = np.prod([float(count) for _, count in transfer.source.dims])
        if count > _MOST_ELEMENTS:
            return False
        source, target = (element_places(memories, side) for side in (transfer.source, transfer.destination))
        touched = [(places[:, None] * _size(side) + np.arange(_size(side))).ravel()
                   for places, side in ((source, transfer.source), (target, transfer.destination))]
        if len(np.unique(target)) != len(target):
            return False
        if transfer.source.space == transfer.destination.space and len(np.intersect1d(*touched)):
            return False
        return not any(side.space == "memory" and places.min() < program.data
                       for side, places in zip((transfer.source, transfer.destination), touched))

    # -- running --

    def run(self, case):
        """Run a case on both.

        Returns
        -------
        list of str
            What differs; empty where nothing does.

        Raises
        ------
        golden.core.OutOfInstructions
            The program goes round for ever, or for longer than anybody wants to wait.
        """
        golden = Core(self.core, bytearray(case.content), case.faulty)
        golden.memories.sbuf[:], golden.memories.psum[:] = self._memories.sbuf, self._memories.psum
        scratch = -(-len(case.content) // 128) * 128
        driver = CoreDriver(self.core, scratch + 128 * 16 + golden.memories.sbuf.nbytes + golden.memories.psum.nbytes,
                            model=self.model, **case.timing)
        if self._fresh:
            self._copy_in(golden, driver, scratch)
        _put(driver.memory, 0, case.content)
        ends = len(case.content)
        for machine in (golden, driver):
            for ring, held in case.program.descriptors.items():
                machine.set_ring(ring, case.program.addresses[ring], len(held))
            for stream in STREAMS:
                machine.start(stream, case.program.addresses[stream])
        golden_blocked = golden.run(limit=_MOST_INSTRUCTIONS)
        # Beyond the end of the program's memory there is only scratch: the golden core has no memory there at all.
        driver.bus.faulty = [*case.faulty, (ends, len(driver.memory))]
        driver.clear_counters()
        blocked = driver.run(_MOST_CYCLES)
        return self._compare(case, golden, golden_blocked, driver, blocked, scratch)

    def _copy_in(self, golden, driver, scratch):
        """What another run left in the RTL's memories; a bank can be read once a word was written to it."""
        core, name = self.core, self.core.formats[0]
        transposes = name == "int8"
        operand = f"sbuf[0+1, 0, {name}, 1*1]"
        result = "int32" if transposes else "fp32"
        lines = [f"load_stationary stationary={operand} transpose={int(transposes)}"]
        lines += [f"multiply_moving moving={operand} result=psum[0+1, {bank * core.psum_bank_bytes}, {result}, 1*1]"
                  for bank in range(core.psum_banks)]
        program = assemble("\n".join([*lines, "halt"]))
        _put(driver.memory, 0, program)
        driver.start("tensor", 0)
        driver.run()
        golden.memories.sbuf[:], golden.memories.psum[:] = driver.dump(scratch, range(core.psum_banks))
        self._fresh = False
        driver.reset()

    def _compare(self, case, golden, golden_blocked, driver, blocked, scratch):
        differ = []

        def same(what, expected, got):
            if expected != got:
                differ.append(f"{what}: golden {expected}, RTL {got}")

        same("streams that wait", [(entry.stream, entry.address) for entry in golden_blocked],
             [(entry.stream, entry.address) for entry in blocked])
        failures = [{name: (failure.cause.name, failure.address % (1 << 40)) for name, failure in machine.failures.items()}
                    for machine in (golden, driver)]
        same("failures", *failures)
        for name, view in driver.streams.items():
            state = golden.streams[name]
            same(f"stream {name}", (state.running, state.address % (1 << 40)), (view.running, view.address))
            if len(case.program.streams[name]) > 1:
                same(f"registers of {name}", state.registers.values, driver.registers(name))
        same("semaphores", *(_nonzero(machine.semaphores) for machine in (golden, driver)))
        same("notifications", golden.interrupts, driver.interrupts)
        same("special results", golden.special, driver.counters["special"])
        memory = np.frombuffer(golden.memory, np.uint8).copy()
        got_memory = driver.memory[:len(memory)].copy()
        driver.bus.faulty = []
        banks = [int(bank) for bank in np.flatnonzero(golden.memories.written)]
        sbuf, psum = driver.dump(scratch, banks)
        expected_sbuf = golden.memories.sbuf.copy()
        for name, failure in golden.failures.items():
            if failure.cause == Cause.MEMORY:  # the elements of a transfer that memory failed may be old or new
                transfer = decode_transfer(bytes(golden.memory[failure.address:failure.address + 128]))
                places, size = element_places(golden.memories, transfer.destination), _size(transfer.destination)
                touched = (places[:, None] * size + np.arange(size)).ravel()
                if transfer.destination.space == "sbuf":
                    expected_sbuf.reshape(-1)[touched] = sbuf.reshape(-1)[touched]
                else:
                    touched = touched[touched < len(memory)]
                    memory[touched] = got_memory[touched]
        for what, expected, got in (("memory", memory, got_memory), ("state buffer", expected_sbuf, sbuf)):
            if (places := np.flatnonzero(expected.ravel() != got.ravel())).size:
                differ.append(f"{what}: {places.size} bytes differ, the first at {places[0]:#x}: golden "
                              f"{expected.ravel()[places[0]]:#x}, RTL {got.ravel()[places[0]]:#x}")
        words = self.core.psum_bank_words
        for bank in banks:
            own = slice(bank * words, (bank + 1) * words)
            if (golden.memories.psum[:, own] != psum[:, own]).any():
                differ.append(f"bank {bank} of the partial-sum buffer differs in "
                              f"{int((golden.memories.psum[:, own] != psum[:, own]).sum())} words")
            golden.memories.psum[:, own] = psum[:, own]
        self._memories.sbuf[:], self._memories.psum[:] = sbuf, golden.memories.psum
        return differ

    def check(self, seed, illegal=False, keep=None):
        """What differs in the case of a seed, as text with the case, or an empty string; None where it goes round for ever."""
        case = self.case(seed, illegal, keep)
        try:
            differ = self.run(case)
        except OutOfInstructions:
            return None
        except SimulationError as error:
            self._fresh = True
            return f"{type(error).__name__}: {error}\n{case.text()}"
        return "\n".join([*differ, case.text()]) if differ else ""

    def shrink(self, seed, illegal=False):
        """The smallest failing case that leaving out operations one by one leads to, as text."""
        keep = list(range(self.operations_of(seed, illegal)))
        text = self.check(seed, illegal, keep)
        for index in list(keep):
            fewer = [kept for kept in keep if kept != index]
            if shorter := self.check(seed, illegal, fewer):
                keep, text = fewer, shorter
        return text


def _put(memory, at, content):
    memory[at:at + len(content)] = np.frombuffer(content, np.uint8)


def _size(side):
    return FORMATS[side.format].width // 8


def _nonzero(values):
    return {number: value for number, value in enumerate(values) if value}


def _instruction_bits(instruction, used_only):
    """Bits that may be flipped: not what an instruction waits for, changes, starts, or where it branches to."""
    header = sum(width for _, width, _ in HEADER)
    first_wait = sum(width for _, width, _ in HEADER[:3])
    own = HEADER_BITS + PATTERNS * PATTERN_BITS
    kept = set(range(first_wait, header))
    if instruction.opcode in ("dma_start", "branch"):
        kept |= set(range(own, own + sum(abs(width) for _, width, _ in OPCODES[instruction.opcode].fields)))
    opcode = OPCODES[instruction.opcode]
    used = [*range(first_wait), *range(HEADER_BITS, HEADER_BITS + len(opcode.accesses) * PATTERN_BITS),
            *range(own, own + sum(abs(width) for _, width, _ in opcode.fields))]
    return [bit for bit in (used if used_only else range(8 * INSTRUCTION_BYTES)) if bit not in kept]


def _descriptor_bits(used_only):
    position, bits = 0, []
    for name, width, _ in DESCRIPTOR:
        if not name.startswith("update") and not (used_only and "reserved" in name):
            bits += range(position, position + abs(width))
        position += abs(width)
    return bits if used_only else [*bits, *range(position, position + 8)]


def main(values):
    """Run the command; returns 1 if a program ended differently, else 0."""
    began = time.perf_counter()
    system = selected_system(values)
    count, seed = _whole("PROGRAMS", values["PROGRAMS"]), _whole("SEED", values["SEED"])
    fuzzer = Fuzzer(system.chip.core)
    totals = {"programs": 0, "illegal": 0, "mismatches": 0, "hangs": 0, "endless": 0}
    with progress_bar("random programs", "programs") as progress:
        for number in range(count):
            illegal = number % 5 == 4
            text = fuzzer.check(seed + number, illegal)
            totals["programs"] += 1
            totals["illegal"] += illegal
            totals["endless"] += text is None
            if text:
                totals["hangs" if text.startswith("OutOfCycles") else "mismatches"] += 1
                print(f"\nSEED={seed + number}{' (illegal)' if illegal else ''}:\n{fuzzer.shrink(seed + number, illegal)}\n")
            progress(number + 1, count)
    publish("fuzz", {"config": system.chip.name, "set": values["SET"] or None, "seed": seed, **totals,
                     "seconds": time.perf_counter() - began})
    return int(totals["mismatches"] + totals["hangs"] > 0)


def _whole(name, text):
    if not text.isdecimal():
        raise SpecError(name, text, "a whole number from 0")
    return int(text)


if __name__ == "__main__":
    run_command(main, {"PROGRAMS": "100", "SEED": "1", "CONFIG": "nano", "SET": ""})
