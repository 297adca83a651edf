"""Random instructions for the vector engine, legal and with results that are defined."""

from dataclasses import replace

import numpy as np

from spec.formats import FORMATS, INT_FORMATS
from spec.isa import DIMENSIONS, OPCODES, VECTOR_CODES, Access, Instruction
from spec.vector import (ARITHMETIC, BITWISE, OPERATORS, REDUCTIONS, SHUFFLE_GROUP, SHUFFLE_KEEPS, TOP, TOP_ELEMENTS,
                         UNCOUNTED)

__all__ = ["VECTOR_INSTRUCTIONS", "VectorGenerator"]

VECTOR_INSTRUCTIONS = tuple(name for name, opcode in OPCODES.items() if opcode.code in VECTOR_CODES)
_WORDS = tuple(name for name, form in FORMATS.items() if form.width == 32)
_CUMULATIVE = ("add", "subtract", "multiply", "maximum", "minimum")
_ROUND_NUMBERS = (0, 1 << 31, 0x3F80_0000, 0xBF80_0000, 0x4000_0000, 0x7F80_0000, 0x7FC0_1234, 1)


class VectorGenerator:
    """Draws instructions; what they touch is told by the patterns of whoever places operands.

    Parameters
    ----------
    core : spec.config.CoreConfig
    rng : numpy.random.Generator
    place : callable
        ``place(format, partitions, count)`` gives a pattern in the state buffer as (dims, offset, bytes in a partition), or None.
    written : callable
        ``written()`` gives the banks of the partial-sum buffer that can be read.
    """

    def __init__(self, core, rng, place, written):
        self._core, self._random, self._place, self._written = core, rng, place, written

    def draw(self, name, most=48):
        """One instruction of that name.

        Returns
        -------
        (Instruction, dict, dict) or None
            The instruction, and what it reads and writes: byte places of the state buffer, words and banks of the partial-sum
            buffer; None where the attempt failed.
        """
        self._reads, self._scalars, self._writes = [], [], []
        count = int(self._random.integers(1, most + 1))
        self._partitions = int(self._random.integers(1, min(self._core.rows, self._core.cols) + 1))
        accesses, fields = {}, {}
        made = getattr(self, f"_{name}")(count, accesses, fields)
        if not made or None in accesses.values():
            return None
        counts = name not in UNCOUNTED
        bits = any(OPERATORS[fields[op]] in BITWISE for op in ("op0", "op1") if op in fields)
        special = counts and not bits and accesses["result"].format not in INT_FORMATS and self._chance(0.5)
        writes = self._together(self._writes)
        if any(len(places) != sum(len(part) for where, part in self._writes if where == space)
               for space, places in writes.items() if space != "banks"):
            return None
        # In place, or apart.
        in_place = len(accesses) == 2 and accesses.get("data") == accesses["result"]
        others = self._scalars + ([] if in_place else self._reads)
        if any(len(np.intersect1d(writes[space], places)) for space, places in others if space in writes and space != "banks"):
            return None
        reads = self._together(self._reads + self._scalars + (self._writes if name == "tensor_copy_predicated" else []))
        order = {role: accesses[role] for role in OPCODES[name].accesses}
        return Instruction(name, order, fields, count_special=special), reads, writes

    def _chance(self, share):
        return self._random.random() < share

    def _choice(self, values):
        return values[int(self._random.integers(len(values)))]

    @staticmethod
    def _together(touched):
        spaces = {}
        for space, places in touched:
            spaces.setdefault(space, []).append(places)
        return {space: np.unique(np.concatenate(places)) for space, places in spaces.items()}

    def _formats(self, bits):
        """Formats of all tensors: any, or for bits integers of one width."""
        if not bits:
            return list(FORMATS)
        width = self._choice((8, 16, 32))
        return [name for name, form in INT_FORMATS.items() if form.width == width]

    def _first(self, limit):
        quadrant = max(1, limit // 4)
        return quadrant * int(self._random.integers(0, (limit - self._partitions) // quadrant + 1))

    def _operand(self, role, names, count, accesses, psum=True):
        """Place an operand or a result; ``names``: its possible formats."""
        core, name = self._core, self._choice(names)
        writes = role in ("result", "reduced")
        banks = range(core.psum_banks) if writes else self._written()
        words = [name for name in names if name in _WORDS]
        if psum and words and len(banks) and count <= 64 and self._chance(0.25):
            name, bank = self._choice(words), self._choice(list(banks))
            step = self._choice((1, 1, 1, -1, 2))
            low = int(self._random.integers(0, max(1, min(64, core.psum_bank_words - 2 * count))))
            first = low + (count - 1 if step < 0 else 0)
            partition = self._first(core.cols)
            access = Access("psum", name, partition, self._partitions, bank * core.psum_bank_bytes + 4 * first, ((step, count),))
            rows = np.arange(partition, partition + self._partitions)[:, None] * core.psum_banks * core.psum_bank_words
            places = (rows + bank * core.psum_bank_words + first + step * np.arange(count)).ravel()
            touched = [("psum", places), ("banks", np.array([bank]))]
        else:
            partition = self._first(core.rows)
            made = self._place(name, count)
            if made is None:
                accesses[role] = None
                return
            dims, offset, places = made
            access = Access("sbuf", name, partition, self._partitions, offset, dims)
            rows = np.arange(partition, partition + self._partitions)[:, None, None] * core.sbuf_bytes
            touched = [("sbuf", (rows + places[:, None] + np.arange(FORMATS[name].width // 8)).ravel())]
        accesses[role] = access
        (self._writes if writes else self._reads).extend(touched)

    def _result(self, names, count, accesses):
        """Somewhere, or where the data are."""
        data = accesses.get("data")
        if data and data.format in names and self._chance(0.1) and len(accesses) == 1:
            accesses["result"] = data
            self._writes += self._reads
        else:
            self._operand("result", names, count, accesses)

    def _tensors(self, roles, bits, count, accesses):
        names = self._formats(bits)
        for role in roles:
            both = role in ("operand", "predicate") and accesses["data"] and accesses["data"].space == "psum"
            self._operand(role, names, count, accesses, psum=not both)
            if accesses[role] is None:
                return False
        self._result(names, count, accesses)
        return True

    def _scalar(self, number, fields):
        fields[f"scalar{number}"] = (self._choice(_ROUND_NUMBERS) if self._chance(0.3) else int(self._random.integers(1 << 32))
                                     if self._chance(0.3) else int(np.float32(self._random.standard_normal()).view(np.uint32)))
        if self._chance(0.3):
            core, partition = self._core, self._first(self._core.rows)
            at = 4 * int(self._random.integers(0, min(512, core.sbuf_bytes) // 4))
            rows = np.arange(partition, partition + self._partitions)[:, None] * core.sbuf_bytes
            self._scalars.append(("sbuf", (rows + at + np.arange(4)).ravel()))
            fields |= {f"scalar{number}": at, f"scalar{number}_stored": 1, f"scalar{number}_partition": partition}

    def _operators(self, fields, **allowed):
        fields |= {op: OPERATORS.index(self._choice(names)) for op, names in allowed.items()}

    def _reverse(self, fields, *names):
        fields |= {name: int(self._chance(0.4)) for name in names}

    # -- the instructions --

    def _tensor_tensor(self, count, accesses, fields):
        bits = self._chance(0.25)
        self._operators(fields, op0=BITWISE if bits else ARITHMETIC[1:])
        return self._tensors(("data", "operand"), bits, count, accesses)

    def _tensor_scalar(self, count, accesses, fields):
        bits = self._chance(0.25)
        names = ("bypass", *BITWISE) if bits else ARITHMETIC
        self._operators(fields, op0=BITWISE if bits else names, op1=names)
        self._reverse(fields, "reverse0", "reverse1")
        self._scalar(0, fields)
        self._scalar(1, fields)
        return self._tensors(("data",), bits, count, accesses)

    def _scalar_tensor_tensor(self, count, accesses, fields):
        self._operators(fields, op0=ARITHMETIC, op1=ARITHMETIC)
        self._reverse(fields, "reverse0", "reverse1")
        self._scalar(0, fields)
        return self._tensors(("data", "operand"), False, count, accesses)

    def _tensor_tensor_scan(self, count, accesses, fields):
        return self._scalar_tensor_tensor(count, accesses, fields)

    def _tensor_copy(self, count, accesses, fields):
        names = list(FORMATS)
        self._operand("data", names, count, accesses)
        if accesses["data"] is None:
            return False
        self._result([accesses["data"].format] if self._chance(0.5) else names, count, accesses)
        return True

    def _tensor_copy_predicated(self, count, accesses, fields):
        self._reverse(fields, "reverse0")
        self._operand("data", list(FORMATS), count, accesses)
        if accesses["data"] is None:
            return False
        self._operand("predicate", ["uint8", "uint16", "uint32"], count, accesses, psum=accesses["data"].space == "sbuf")
        if accesses["predicate"] is None:
            return False
        self._operand("result", [accesses["data"].format], count, accesses)
        # What is kept must have been written.
        return set(dict(self._writes).get("banks", np.zeros(0, int)).tolist()) <= set(self._written())

    def _memset(self, count, accesses, fields):
        fields["value"] = int(self._random.integers(1 << 32))
        self._operand("result", list(FORMATS), count, accesses)
        return True

    def _affine(self, fields):
        wide = self._chance(0.2)
        for name in ("base", "multiplier", *(f"step{index}" for index in range(DIMENSIONS))):
            fields[name] = int(self._random.integers(-2**31, 2**31) if wide else self._random.integers(-40, 41))

    def _iota(self, count, accesses, fields):
        self._affine(fields)
        self._operand("result", list(FORMATS), count, accesses)
        return True

    def _affine_select(self, count, accesses, fields):
        self._affine(fields)
        fields |= {"comparison0": int(self._random.integers(6)), "fill": self._choice(_ROUND_NUMBERS)}
        return self._tensors(("data",), False, count, accesses)

    def _range_select(self, count, accesses, fields):
        fields |= {"comparison0": int(self._random.integers(6)), "comparison1": int(self._random.integers(6)),
                   "fill": self._choice(_ROUND_NUMBERS), "start": int(self._random.integers(-60, 60))}
        for number in range(2):
            self._scalar(number, fields)
            if not fields.get(f"scalar{number}_stored") and self._chance(0.8):
                fields[f"scalar{number}"] = int(np.float32(self._random.integers(-60, 100)).view(np.uint32))
        return self._tensors(("data",), False, count, accesses)

    def _select(self, count, accesses, fields):
        self._reverse(fields, "reverse0")
        self._scalar(0, fields)
        self._operand("data", list(FORMATS), count, accesses)
        if accesses["data"] is None:
            return False
        self._operand("predicate", ["uint8", "uint16", "uint32"], count, accesses, psum=accesses["data"].space == "sbuf")
        self._operand("result", list(FORMATS), count, accesses)
        return True

    def _tensor_reduce(self, count, accesses, fields):
        bits = self._chance(0.25)
        self._operators(fields, op0=[name for name in REDUCTIONS if (name in BITWISE) == bits])
        fields["negate"] = int(not bits and self._chance(0.3))
        names = self._formats(bits)
        self._operand("data", names, count, accesses)
        if accesses["data"] is None:
            return False
        dims = [number for _, number in accesses["data"].dims]
        fields["axes"] = int(self._random.integers(1, DIMENSIONS + 1))
        self._operand("result", names, int(np.prod(dims[fields["axes"]:], dtype=int)), accesses)
        return True

    def _tensor_scalar_reduce(self, count, accesses, fields):
        self._operators(fields, op0=ARITHMETIC, op1=[name for name in REDUCTIONS if name in ARITHMETIC])
        self._reverse(fields, "reverse0")
        self._scalar(0, fields)
        names = list(FORMATS)
        self._operand("data", names, count, accesses)
        self._operand("result", names, count, accesses)
        self._operand("reduced", names, 1, accesses)
        return True

    def _tensor_scalar_cumulative(self, count, accesses, fields):
        self._operators(fields, op0=ARITHMETIC, op1=_CUMULATIVE)
        self._reverse(fields, "reverse0")
        self._scalar(0, fields)
        self._scalar(1, fields)
        return self._tensors(("data",), False, count, accesses)

    def _reciprocal(self, count, accesses, fields):
        return self._tensors(("data",), False, count, accesses)

    def _max8(self, count, accesses, fields):
        names = list(FORMATS)
        self._operand("data", names, max(count, TOP_ELEMENTS[0]), accesses)
        self._operand("result", names, TOP, accesses)
        return True

    def _with_values(self, count, accesses, names, results):
        """Data, 8 values, often among the data, and the result."""
        self._operand("data", list(FORMATS) if self._chance(0.5) else ["uint8", "fp8_e4m3"], max(count, TOP_ELEMENTS[0]), accesses)
        data = accesses["data"]
        if data is None:
            return False
        step, run = data.dims[0]
        if data.space == "sbuf" and run >= TOP and self._chance(0.5):
            # They are read already, as a part of the data.
            accesses["values"] = replace(data, dims=((step, TOP),))
        else:
            self._operand("values", [data.format], TOP, accesses)
        self._operand("result", names, results or max(count, TOP_ELEMENTS[0]), accesses)
        return True

    def _find_index8(self, count, accesses, fields):
        return self._with_values(count, accesses, ["uint16", "uint32"], TOP)

    def _match_replace8(self, count, accesses, fields):
        fields["fill"] = self._choice(_ROUND_NUMBERS)
        return self._with_values(count, accesses, list(FORMATS), None)

    def _set_rng_seed(self, count, accesses, fields):
        self._operand("data", ["int32", "uint32"], 1, accesses)
        return True

    def _rng(self, count, accesses, fields):
        self._operand("result", list(INT_FORMATS), count, accesses)
        return True

    def _dropout(self, count, accesses, fields):
        self._scalar(0, fields)
        if not fields.get("scalar0_stored") and self._chance(0.8):
            fields["scalar0"] = int(np.float32(self._random.random()).view(np.uint32))
        self._operand("data", list(FORMATS), count, accesses)
        if accesses["data"] is None:
            return False
        self._result([accesses["data"].format], count, accesses)
        return True

    def _stream_shuffle(self, count, accesses, fields):
        group = min(SHUFFLE_GROUP, self._core.rows)
        if self._core.rows % group:
            return False
        self._partitions = group * int(self._random.integers(1, self._core.rows // group + 1))
        fields |= {f"mask{index}": SHUFFLE_KEEPS if self._chance(0.2) else int(self._random.integers(group))
                   for index in range(SHUFFLE_GROUP)}
        self._operand("data", list(FORMATS), count, accesses, psum=self._partitions <= self._core.cols)
        if accesses["data"] is None:
            return False
        self._operand("result", [accesses["data"].format], count, accesses, psum=self._partitions <= self._core.cols)
        return True

    def _transpose(self, count, accesses, fields):
        sides = self._partitions, int(self._random.integers(1, min(SHUFFLE_GROUP, self._core.rows, self._core.cols) + 1))
        if max(sides) > min(SHUFFLE_GROUP, self._core.rows):
            return False
        self._operand("data", list(FORMATS), sides[1], accesses)
        self._partitions = sides[1]
        if accesses["data"] is None:
            return False
        self._operand("result", [accesses["data"].format], sides[0], accesses)
        return True

    def _tensor_partition_reduce(self, count, accesses, fields):
        bits = self._chance(0.25)
        self._operators(fields, op0=[name for name in REDUCTIONS if (name in BITWISE) == bits])
        fields["average"] = int(OPERATORS[fields["op0"]] == "add" and self._chance(0.5))
        names = self._formats(bits)
        self._operand("data", names, count, accesses)
        self._partitions = 1
        self._operand("result", names, count, accesses)
        return True
