"""The vector engine in a core against the golden core: every instruction, operator and class of formats; cycles."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from sim.random_programs import random_vector_generator
from sim.random_vector import VECTOR_INSTRUCTIONS
from spec.formats import FORMATS, INT_FORMATS
from spec.isa import COMPARISONS, OPCODES
from spec.vector import ARITHMETIC, BITWISE, OPERATORS, REDUCTIONS
from tests.vector_bench import CORE, bench, instruction

CLASSES = [("fp32", "tf32", "bf16"), ("bf16", "fp16", "fp32"), ("fp8_e4m3", "fp8_e5m2", "fp16"), ("fp8_e4m3fn", "fp8_e3m4", "int8"),
           ("int8", "uint16", "tf32"), ("int32", "uint32", "int32"), ("uint8", "int16", "fp8_e5m2")]
"""Formats of data, operand and result: 32, 16 and 8 bits, numbers and integers."""
RESULTS, PART = 2048, 64
"""Where the results of a program's instructions begin, and how far they are apart."""
OVERHEAD = 100
"""Cycles of an instruction that do not depend on its length, from its stream's start to its halt, of four partitions."""


def program(rng, formats, made, stream="vector"):
    """Fill the memories and run instructions of 16 elements whose results lie side by side."""
    bench().fill(rng, formats)
    placed = []
    for number, one in enumerate(made):
        accesses = dict(one.accesses)
        if "result" in accesses:
            accesses["result"] = replace(accesses["result"], offset=RESULTS + PART * (number % 16))
        placed.append(replace(one, accesses=accesses))
    for first in range(0, len(placed), 16):
        bench().run(*placed[first:first + 16], stream=stream)


@pytest.mark.parametrize("formats", CLASSES, ids="-".join)
def test_operators(rng, formats):
    named = dict(zip(("data", "operand", "result"), formats))
    program(rng, formats[:2], [instruction("tensor_tensor", named, 16, op0=operator) for operator in ARITHMETIC[1:]])


@pytest.mark.parametrize("width", [8, 16, 32])
def test_operators_of_bits(rng, width):
    named = dict(zip(("data", "operand", "result"), (f"int{width}", f"uint{width}", f"int{width}")))
    program(rng, (f"int{width}", f"uint{width}"), [
        *(instruction("tensor_tensor", named, 16, op0=operator) for operator in BITWISE),
        *(instruction("tensor_scalar", {"data": named["data"], "result": named["result"]}, 16, op0=operator, op1=second, scalar0=5,
                      scalar1=0x5A, reverse1=reverse) for operator in ("left_shift", "right_shift", "bitwise_xor")
          for second, reverse in (("bypass", 0), ("bitwise_and", 0), ("right_shift", 1)))])


@pytest.mark.parametrize("source", FORMATS)
def test_conversions_and_copies(rng, source):
    program(rng, (source,), [instruction("tensor_copy", {"data": source, "result": target}, 16) for target in FORMATS])


@pytest.mark.parametrize("formats", CLASSES, ids="-".join)
def test_reductions(rng, formats):
    made, whole = [], (f"int{FORMATS[formats[0]].width}",) * 3
    for index, operator in enumerate(REDUCTIONS):
        names = whole if operator in BITWISE else formats
        for groups in (1, 3, 7, 9, 16, 32):
            results = 48 // groups if groups < 16 else 8
            if results * FORMATS[names[2]].width > 8 * PART:
                continue
            dims = {"data": ((1, groups), (groups, results)), "result": ((1, results),)}
            made.append(instruction("tensor_reduce", {"data": names[0], "result": names[2]}, groups * results, dims=dims, op0=operator,
                                    axes=1, negate=int(operator not in BITWISE and index % 2)))
    program(rng, formats[:1], made)


@pytest.mark.parametrize("formats", CLASSES, ids="-".join)
@pytest.mark.parametrize("name", ["tensor_scalar", "scalar_tensor_tensor", "tensor_scalar_reduce", "tensor_tensor_scan",
                                  "tensor_scalar_cumulative"])
def test_two_operators(rng, formats, name):
    roles = dict(zip(("data", "operand", "result", "reduced"), (*formats, "fp32")))
    second = {"tensor_scalar_reduce": [op for op in REDUCTIONS if op in ARITHMETIC],
              "tensor_scalar_cumulative": ("add", "subtract", "multiply", "maximum", "minimum")}.get(name, ARITHMETIC)
    names = [field for field, _, _ in OPCODES[name].fields]
    made = []
    for _ in range(32):
        fields = {"op0": str(rng.choice(ARITHMETIC)), "op1": str(rng.choice(second)),
                  **{field: int(rng.integers(2)) for field in ("reverse0", "reverse1") if field in names}}
        for number in (0, 1):
            if f"scalar{number}" in names:
                stored = int(rng.integers(2))
                value = 3584 + 4 * number if stored else int(np.float32(rng.standard_normal()).view(np.uint32))
                fields |= {f"scalar{number}": value, f"scalar{number}_stored": stored}
        made.append(instruction(name, {role: roles[role] for role in OPCODES[name].accesses}, 16, **fields))
    program(rng, formats[:2], made)


@pytest.mark.parametrize("formats", CLASSES, ids="-".join)
def test_selections(rng, formats):
    bench().fill(rng, (formats[0], "uint8", formats[0]))
    sbuf = bench().golden.memories.sbuf.copy()
    sbuf[:, 1024:2048] *= rng.integers(0, 2, (CORE.rows, 1024), np.uint8)
    bench().write(sbuf)
    data, result = formats[0], formats[2]
    for index in range(len(COMPARISONS)):
        bench().run(
            instruction("tensor_copy_predicated", {"data": data, "predicate": "uint8", "result": data}, 200, reverse0=index % 2),
            instruction("select", {"data": data, "predicate": "uint8", "result": result}, 150, reverse0=index % 2,
                        scalar0=0x7FC0_1234),
            instruction("range_select", {"data": data, "result": result}, 100, comparison0=index, start=-50,
                        comparison1=int(rng.integers(6)), scalar0=0x4120_0000, scalar1=0x4220_0000, fill=0xFF7F_FFFF))


@pytest.mark.parametrize("name", ["iota", "affine_select"])
def test_affine_values(rng, name):
    for target in FORMATS:
        for wide in (0, 1):
            reach = 1 << (31 if wide else 6)
            steps = {field: int(rng.integers(-reach, reach)) for field in ("base", "multiplier", "step0", "step1", "step2", "step3")}
            roles, more = {"result": target}, {}
            if name == "affine_select":
                roles, more = {"data": "fp16", "result": target}, {"comparison0": int(rng.integers(6)), "fill": 0xBF80_0000}
            made = instruction(name, roles, 240, dims={"result": ((1, 3), (3, 4), (12, 2), (24, 10))}, **steps, **more)
            if target == "fp32":
                bench().fill(rng, ("fp16",))
            bench().run(made, stream="gpsimd")


def test_reciprocals(rng):
    for source in FORMATS:
        program(rng, (source,), [
            instruction("reciprocal", {"data": source, "result": target}, 16, count_special=target != "int16")
            for target in ("fp32", "bf16", "fp8_e4m3", "int16")])


@pytest.mark.parametrize("source", FORMATS)
def test_the_largest(rng, source):
    program(rng, (source,), [
        instruction("max8", {"data": source, "result": target}, count, dims={"result": ((1, 8),)})
        for target in ("fp32", "bf16", "int8") for count in (8, 9, 40, 150)])


@pytest.mark.parametrize("source", FORMATS)
def test_values_are_found_and_replaced(rng, source):
    """Values that are there once, several times, or not: parts of the data and others."""
    bench().fill(rng, (source, source))
    sbuf = bench().golden.memories.sbuf.copy()
    size = FORMATS[source].width // 8
    for values in range(0, 12 * 8 * size, 8 * size):
        taken = rng.integers(0, 40, 8) * size
        for place, at in enumerate(taken):
            if rng.random() < 0.8:
                sbuf[:, 1024 + values + place * size:][:, :size] = sbuf[:, at:at + size]
    bench().write(sbuf)
    for number, count in enumerate((8, 9, 40, 150)):
        made = []
        for index in range(3):
            roles = {"data": source, "values": source, "result": ("uint16", "uint32", "uint16")[index]}
            find = instruction("find_index8", roles, count, dims={"values": ((1, 8),), "result": ((1, 8),)})
            change = instruction("match_replace8", roles | {"result": (source, "fp32", "bf16")[index]}, count,
                                 dims={"values": ((1, 8),)}, fill=(0xFF7F_FFFF, 0x7FC0_0001, 0x3F80_0000)[index])
            for one, at in ((find, 3072 + 64 * index), (change, 2048)):
                accesses = {**one.accesses, "values": replace(one.accesses["values"], offset=1024 + 8 * size * (3 * number + index)),
                            "result": replace(one.accesses["result"], offset=at)}
                made.append(replace(one, accesses=accesses))
        bench().run(*made)


def test_random_numbers(rng):
    """Of every format, before and after a seed; draws go on from one instruction to the next."""
    bench().fill(rng, ("fp32", "bf16"))
    for partitions in range(1, CORE.rows + 1):
        bench().run(*(instruction("rng", {"result": name}, 40) for name in INT_FORMATS),
                    instruction("set_rng_seed", {"data": "uint32"}, 1, partitions=partitions),
                    instruction("rng", {"result": "uint16"}, 40, partitions=2),
                    instruction("dropout", {"data": "fp32", "result": "fp32"}, 200, scalar0=0x3E80_0000),
                    instruction("rng", {"result": "int32"}, 40))


@pytest.mark.parametrize("name", FORMATS)
def test_dropout(rng, name):
    """No probability, every probability, NaN, and more than one."""
    bench().fill(rng, (name,))
    words = [0, 0x8000_0000, 0x3F80_0000, 0x7FC0_0000, 0xBF80_0000, 0x7F80_0000, 0x3380_0000, 0x3F00_0000]
    program(rng, (name,), [instruction("set_rng_seed", {"data": "int32"}, 1),
                           *(instruction("dropout", {"data": name, "result": name}, 16, scalar0=word) for word in words)])


@pytest.mark.parametrize("name", FORMATS)
def test_shuffles_and_transposes(rng, name):
    masks = [dict(zip((f"mask{index}" for index in range(4)), mask)) for mask in ((3, 2, 1, 0), (1, 1, 255, 2), (255, 0, 3, 3))]
    program(rng, (name,), [
        *(instruction("stream_shuffle", {"data": name, "result": name}, 16, **mask) for mask in masks),
        *(transpose(name, partitions, elements) for partitions in (1, 3, 4) for elements in (1, 2, 3, 4))])


def transpose(name, partitions, elements):
    """Of so many partitions and elements."""
    made = instruction("transpose", {"data": name, "result": name}, elements, partitions=partitions)
    result = replace(made.accesses["result"], partitions=elements, dims=((1, partitions),))
    return replace(made, accesses={**made.accesses, "result": result})


@pytest.mark.parametrize("formats", CLASSES, ids="-".join)
def test_reductions_across_partitions(rng, formats):
    whole, made = (f"int{FORMATS[formats[0]].width}",) * 3, []
    for operator in REDUCTIONS:
        names = whole if operator in BITWISE else formats
        for partitions in range(1, CORE.rows + 1):
            for average in range(1 + (operator == "add")):
                one = instruction("tensor_partition_reduce", {"data": names[0], "result": names[2]}, 16, partitions=partitions,
                                  op0=operator, average=average)
                result = replace(one.accesses["result"], partitions=1)
                made.append(replace(one, accesses={**one.accesses, "result": result}))
    program(rng, formats[:1], made, "gpsimd")


def test_memset(rng):
    program(rng, ("fp32",), [instruction("memset", {"result": name}, 16, value=int(rng.integers(1 << 32))) for name in FORMATS])


@functools.cache
def generator():
    return random_vector_generator(CORE, np.random.default_rng(2))


@pytest.mark.parametrize("name", VECTOR_INSTRUCTIONS)
@pytest.mark.parametrize("programs", [4, pytest.param(200, marks=pytest.mark.long)])
def test_random_patterns(rng, name, programs):
    """Strides backwards, several dimensions, other partitions, both buffers; several instructions in a program."""
    for _ in range(programs):
        bench().fill(rng, ("bf16", "fp32", "int16"))
        drawn = [made for made in (generator().draw(name) for _ in range(60)) if made][:12]
        bench().run(*(made[0] for made in drawn), stream=OPCODES[name].streams[0])


def cycles(rng, name, formats, count, **more):
    """Of one instruction, the stream's start and halt included."""
    bench().fill(rng, ("bf16", "bf16"))
    return bench().run_timed(instruction(name, formats, count, **more), stream=OPCODES[name].streams[0])


BF16 = {"data": "bf16", "operand": "bf16", "predicate": "uint16", "result": "bf16", "reduced": "fp32"}
FP32 = {"data": "fp32", "operand": "fp32", "predicate": "uint32", "values": "fp32", "result": "fp32", "reduced": "fp32"}
FIND = FP32 | {"result": "uint32"}
PACE = [
    # instruction, formats, cycles an element (docs/vector-engine.md, never more than the public formulas), what else it has
    ("tensor_scalar", FP32, 1, {"op0": "add", "op1": "multiply"}), ("tensor_copy", FP32, 1, {}),
    ("tensor_tensor", BF16, 1, {"op0": "add"}), ("tensor_tensor", FP32, 1, {"op0": "add"}),
    ("scalar_tensor_tensor", BF16, 1, {"op0": "subtract", "op1": "multiply"}),
    ("scalar_tensor_tensor", FP32, 1, {"op0": "add", "op1": "add"}), ("tensor_tensor_scan", FP32, 2, {"op0": "multiply", "op1": "add"}),
    ("tensor_scalar_cumulative", FP32, 1, {"op0": "add", "op1": "add"}), ("tensor_copy_predicated", FP32, 1, {}),
    ("select", FP32, 1, {}), ("range_select", FP32, 1, {}), ("memset", FP32, 1, {}), ("rng", FIND, 1, {}), ("dropout", FP32, 1, {}), ("stream_shuffle", FP32, 1, {}), ("iota", FP32, 1, {}), ("affine_select", FP32, 1, {}),
    ("reciprocal", FP32, 8, {}), ("max8", FP32, 1, {"dims": {"result": ((1, 8),)}}), ("tensor_scalar_reduce", FP32, 1, {"op0": "add", "op1": "add"}),
    ("find_index8", FIND, 1, {"dims": {"values": ((1, 8),), "result": ((1, 8),)}}), ("match_replace8", FP32, 1, {"dims": {"values": ((1, 8),)}}),
    ("tensor_reduce", FP32, 1, {"op0": "add", "axes": 1, "dims": {"result": ((1, 1),)}})]


@pytest.mark.parametrize(("name", "formats", "pace", "more"), PACE, ids=[f"{row[0]}-{row[1]['data']}" for row in PACE])
def test_cycles_are_within_the_public_formulas(rng, name, formats, pace, more):
    roles = {role: formats[role] for role in OPCODES[name].accesses}
    short, long = (cycles(rng, name, roles, count, **more) for count in (16, 240))
    assert long - short <= pace * (240 - 16)
    assert short <= pace * 16 + OVERHEAD


@pytest.mark.parametrize("groups", [1, 2, 3, 5, 8, 9])
def test_reductions_of_short_groups_keep_the_pace(rng, groups):
    """Joining the running results of one group takes no longer than the next group's elements."""
    def taken(results):
        dims = {"data": ((1, groups), (groups, results)), "result": ((1, results),)}
        return cycles(rng, "tensor_reduce", {"data": "fp32", "result": "fp32"}, groups * results, dims=dims, op0="add", axes=1)
    assert taken(25) - taken(5) <= 20 * groups


def test_a_wrong_result_is_found(rng, monkeypatch):
    """The golden core forgets one operator."""
    from golden import vector
    apply = vector.apply
    monkeypatch.setattr(vector, "apply", lambda operator, a, b, reverse=False: apply("minimum" if operator == "maximum" else operator,
                                                                                   a, b, reverse))
    bench().fill(rng, ("fp32", "fp32"))
    with pytest.raises(AssertionError):
        bench().run(instruction("tensor_tensor", FP32, 100, op0="maximum"))


def test_the_corners_are_met(rng):
    """Data hold NaN, infinities and subnormal numbers."""
    bench().fill(rng, ("fp32",))
    magnitudes = bench().golden.memories.sbuf[:, :1024].view(np.uint32) & 0x7FFF_FFFF
    assert (magnitudes > 0x7F80_0000).any() and (magnitudes == 0x7F80_0000).any() and ((magnitudes < 0x80_0000) & (magnitudes > 0)).any()
    assert len(OPERATORS) == len(set(OPERATORS))
