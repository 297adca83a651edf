"""The AXI4 memory: what is read was written, in order, in time; and whoever breaks a rule is caught."""

from collections import defaultdict

import numpy as np
import pytest

from hdl.axi import RESP_DECERR, RESP_OKAY, RESP_SLVERR
from hdl.emit import emit
from sim.errors import BusRuleBroken, OutOfCycles
from sim.memory import Memory
from sim.model import Model
from spec.errors import SpecError
from tests.axi_bench import MANAGERS, Burst, Channels, Copier, lanes, pack, unpack

SIZE = 1 << 16
PAGE = 4096


@pytest.fixture(scope="module")
def channels():
    return Model.build(emit(Channels()))


@pytest.fixture(scope="module")
def copier():
    return Model.build(emit(Copier()))


def served(model, *managers, size=SIZE, **arguments):
    """A memory with random contents on a model that is reset."""
    memory = Memory(model, managers, size, **arguments)
    memory.bytes[:] = np.random.default_rng(2).integers(0, 256, size, np.uint8)
    model.reset()
    return memory


def random_bursts(rng, shape, count, first, end):
    """Legal bursts whose bytes are from ``first`` to ``end``, which are multiples of a page."""
    bursts = []
    for _ in range(count):
        widest = shape.bytes.bit_length() - 1
        size, beats = int(rng.integers(0, widest + 1)), int(rng.choice([1, 1, 2, 5, 16]))
        place = int(rng.integers(0, (PAGE >> size) - beats + 1)) << size
        if beats == 1:
            place += int(rng.integers(0, 1 << size))
        page = int(rng.integers(first, end)) // PAGE * PAGE
        bursts.append(Burst(int(rng.integers(0, min(1 << shape.id_bits, 5))), page + place, beats - 1, size))
    return bursts


def random_beats(rng, shape, bursts):
    """Beats for bursts, with random strobes within their lanes."""
    beats = []
    for burst in bursts:
        for beat in range(burst.len + 1):
            low, high = lanes(burst, beat, shape.bytes)
            strobes = ((1 << high) - (1 << low)) & (-1 if rng.random() < 0.5 else int.from_bytes(rng.bytes(8), "little"))
            beats.append({"data": int.from_bytes(rng.bytes(shape.bytes), "little"), "strb": strobes,
                          "last": int(beat == burst.len)})
    return beats


def touches(ranges, addresses):
    return any(first <= address < end for first, end in ranges for address in addresses)


def reference_write(contents, shape, bursts, beats, faulty=()):
    """What the writes leave in ``contents``, which is changed, and the response to each."""
    beats, responses = iter(beats), []
    for burst in bursts:
        worst = RESP_OKAY
        for number in range(burst.len + 1):
            item, base = next(beats), burst.place(number) // shape.bytes * shape.bytes
            written = [lane for lane in range(shape.bytes) if item["strb"] >> lane & 1]
            if burst.place(number) + (1 << burst.size) > len(contents):
                worst = max(worst, RESP_DECERR)
            elif touches(faulty, [base + lane for lane in written]):
                worst = max(worst, RESP_SLVERR)
            else:
                for lane in written:
                    contents[base + lane] = item["data"] >> 8 * lane & 255
        responses.append(worst)
    return responses


def check_reads(contents, shape, bursts, beats, faulty=()):
    """Check the collected beats against their bursts, identifier by identifier.

    Returns
    -------
    list of Burst
        The bursts in the order of their answers.
    """
    waiting, order, beats = defaultdict(list), [], iter(beats)
    for burst in bursts:
        waiting[burst.id].append(burst)
    for beat in beats:
        burst = waiting[beat["id"]].pop(0)
        order.append(burst)
        for number in range(burst.len + 1):
            if number:
                beat = next(beats)
            low, high = lanes(burst, number, shape.bytes)
            base = burst.place(number) // shape.bytes * shape.bytes
            expected = RESP_OKAY
            if burst.place(number) + (1 << burst.size) > len(contents):
                expected = RESP_DECERR
            elif touches(faulty, range(base, base + shape.bytes)):
                expected = RESP_SLVERR
            got = list(beat["data"].to_bytes(shape.bytes, "little"))[low:high]
            assert (beat["id"], beat["resp"], beat["last"]) == (burst.id, expected, number == burst.len), burst
            assert got == (contents[base + low:base + high].tolist() if expected == RESP_OKAY else [0] * (high - low)), burst
    assert not any(waiting.values())
    return order


def read(model, name, bursts, max_cycles=20_000, **arguments):
    layouts = MANAGERS[name].layouts
    run = model.streams({f"{name}_ar": pack(layouts["ar"], bursts)}, {f"{name}_r": sum(burst.len + 1 for burst in bursts)},
                        max_cycles=max_cycles, **arguments)
    return run, unpack(layouts["r"], run[f"{name}_r"])


def write(model, name, bursts, beats, max_cycles=20_000, **arguments):
    layouts = MANAGERS[name].layouts
    run = model.streams({f"{name}_aw": pack(layouts["aw"], bursts), f"{name}_w": pack(layouts["w"], beats)},
                        {f"{name}_b": len(bursts)}, max_cycles=max_cycles, **arguments)
    return run, unpack(layouts["b"], run[f"{name}_b"])


def by_id(items, value):
    grouped = defaultdict(list)
    for item in items:
        grouped[item["id"]].append(value(item))
    return grouped


SETTINGS = {"plain": {}, "late": {"latency": (20, 20)}, "stalling": {"stall": 0.5},
            "wild": {"latency": (1, 40), "stall": 0.3, "reorder": True}}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", MANAGERS)
def test_random_traffic(channels, rng, name, settings):
    shape, faulty = MANAGERS[name], [(5000, 5003), (9 * PAGE, 9 * PAGE + 100)]
    memory = served(channels, name, faulty=faulty, seed=3, **SETTINGS[settings])
    contents, stall = memory.bytes.copy(), {"wild": 0.4}.get(settings, 0.0)
    if shape.writes:
        bursts = random_bursts(rng, shape, 80, 0, SIZE + 2 * PAGE)
        beats = random_beats(rng, shape, bursts)
        expected = reference_write(contents, shape, bursts, beats, faulty)
        _, answers = write(channels, name, bursts, beats, stall=stall)
        pairs = [{"id": burst.id, "resp": response} for burst, response in zip(bursts, expected)]
        assert by_id(answers, lambda item: item["resp"]) == by_id(pairs, lambda item: item["resp"])
        assert (memory.bytes == contents).all()
    bursts = random_bursts(rng, shape, 80, 0, SIZE + 2 * PAGE)
    _, beats = read(channels, name, bursts, stall=stall)
    order = check_reads(contents, shape, bursts, beats, faulty)
    if settings != "wild":
        assert order == bursts
    elif name != "byte":
        assert order != bursts


def test_all_managers_at_once(channels, rng):
    """Each writes pages of its own and reads what nobody writes."""
    memory = served(channels, *MANAGERS, latency=(1, 30), stall=0.2, reorder=True)
    contents, inputs, outputs, reads, answers = memory.bytes.copy(), {}, {}, {}, {}
    for index, (name, shape) in enumerate(MANAGERS.items()):
        reads[name] = random_bursts(rng, shape, 60, 8 * PAGE, SIZE)
        inputs[f"{name}_ar"] = pack(shape.layouts["ar"], reads[name])
        outputs[f"{name}_r"] = sum(burst.len + 1 for burst in reads[name])
        if shape.writes:
            bursts = random_bursts(rng, shape, 60, 2 * index * PAGE, 2 * (index + 1) * PAGE)
            beats = random_beats(rng, shape, bursts)
            answers[name] = reference_write(contents, shape, bursts, beats)
            inputs |= {f"{name}_aw": pack(shape.layouts["aw"], bursts), f"{name}_w": pack(shape.layouts["w"], beats)}
            outputs[f"{name}_b"] = len(bursts)
    run = channels.streams(inputs, outputs, max_cycles=20_000, stall=0.2)
    assert (memory.bytes == contents).all()
    for name, shape in MANAGERS.items():
        check_reads(contents, shape, reads[name], unpack(shape.layouts["r"], run[f"{name}_r"]))


@pytest.mark.parametrize("late", ["aw", "w"])
def test_write_data_before_and_after_its_address(channels, rng, late):
    memory, shape = served(channels, "core"), MANAGERS["core"]
    bursts = random_bursts(rng, shape, 30, 0, SIZE)
    beats = random_beats(rng, shape, bursts)
    contents = memory.bytes.copy()
    reference_write(contents, shape, bursts, beats)
    write(channels, "core", bursts, beats, stall={f"core_{late}": 0.9})
    assert (memory.bytes == contents).all()


@pytest.mark.parametrize("length", [1, 16])
def test_a_beat_a_cycle(channels, length):
    beats = 640
    served(channels, "core", latency=(30, 30))
    bursts = [Burst(index % 3, 128 * index % SIZE, length - 1, 3) for index in range(beats // length)]
    run, _ = read(channels, "core", bursts)
    assert run.last["core_r"] - run.first["core_r"] == beats - 1
    assert run.first["core_r"] - run.first["core_ar"] == 30
    data = [{"data": index, "strb": 255, "last": int(index % length == length - 1)} for index in range(beats)]
    run, _ = write(channels, "core", bursts, data)
    assert run.last["core_w"] - run.first["core_w"] == beats - 1
    assert run.last["core_b"] - run.last["core_w"] == 30


@pytest.mark.parametrize("latency", [(1, 1), (7, 7), (5, 25)])
def test_latency(channels, latency):
    """One burst at a time: its answer is exactly as late as was drawn for it."""
    served(channels, "core", latency=latency)
    reads, writes = set(), set()
    for _ in range(150):
        run, _ = read(channels, "core", [Burst(1, 64, 0, 3)])
        reads.add(run.last["core_r"] - run.first["core_ar"])
        run, _ = write(channels, "core", [Burst(1, 64, 0, 3)], [{"data": 5, "strb": 255, "last": 1}])
        writes.add(run.last["core_b"] - run.last["core_w"])
    assert reads == writes == set(range(latency[0], latency[1] + 1))


def test_reordering_keeps_the_order_of_an_identifier(channels):
    served(channels, "core", latency=(1, 60), reorder=True)
    bursts = [Burst(index % 4, 8 * index, 0, 3) for index in range(200)]
    beats = [{"data": index, "strb": 255, "last": 1} for index in range(200)]
    _, answers = write(channels, "core", bursts, beats)
    _, beats = read(channels, "core", bursts)
    assert [item["id"] for item in answers] != [burst.id for burst in bursts]
    assert [item["id"] for item in beats] != [burst.id for burst in bursts]
    assert all(values == list(range(number, 200, 4)) for number, values in by_id(beats, lambda item: item["data"]).items())


def test_far_addresses_are_not_decoded(channels):
    memory = served(channels, "core")
    before = memory.bytes.copy()
    bursts = [Burst(1, address, 0, 3) for address in (SIZE, (1 << 40) - 8, 1 << 39)]
    _, beats = read(channels, "core", bursts)
    assert [(beat["resp"], beat["data"]) for beat in beats] == [(RESP_DECERR, 0)] * 3
    _, answers = write(channels, "core", bursts, [{"data": 1, "strb": 255, "last": 1}] * 3)
    assert [answer["resp"] for answer in answers] == [RESP_DECERR] * 3
    assert (memory.bytes == before).all()
    served(channels, "wide")
    _, beats = read(channels, "wide", [Burst(1, (1 << 64) - 64, 0, 6)])
    assert beats[0]["resp"] == RESP_DECERR


def test_faulty_bytes_can_be_changed(channels):
    memory = served(channels, "core")
    burst, beat = Burst(1, 64, 0, 3), {"data": 1, "strb": 0x0F, "last": 1}

    def responses():
        return read(channels, "core", [burst])[1][0]["resp"], write(channels, "core", [burst], [beat])[1][0]["resp"]

    assert responses() == (RESP_OKAY, RESP_OKAY)
    memory.faulty = [(0, 64), (68, 69)]
    assert responses() == (RESP_SLVERR, RESP_OKAY)  # the write touches the word's other half
    memory.faulty = [(60, 65)]
    assert responses() == (RESP_SLVERR, RESP_SLVERR)
    memory.faulty = []
    assert responses() == (RESP_OKAY, RESP_OKAY)


def test_contents_are_shared(channels):
    memory = served(channels, "core")
    memory.bytes[64:72] = np.arange(8)
    assert read(channels, "core", [Burst(1, 64, 0, 3)])[1][0]["data"] == 0x0706050403020100
    write(channels, "core", [Burst(1, 64, 0, 3)], [{"data": 0xAB << 8, "strb": 2, "last": 1}])
    assert memory.bytes[64:68].tolist() == [0, 0xAB, 2, 3]


def test_statistics(channels):
    memory = served(channels, "core", "reader", latency=(50, 50))
    read(channels, "core", [Burst(1, 128 * index, 3, 3) for index in range(10)])
    write(channels, "core", [Burst(1, 0, 1, 2), Burst(1, 8, 0, 3)],
          [{"data": 0, "strb": 0x0F, "last": 0}, {"data": 0, "strb": 0x30, "last": 1}, {"data": 0, "strb": 0xFF, "last": 1}])
    assert memory.statistics("core") == {
        "read_bursts": 10, "read_beats": 40, "bytes_read": 320, "most_reads": 10,
        "write_bursts": 2, "write_beats": 3, "bytes_written": 14, "most_writes": 2}
    assert not any(memory.statistics("reader").values())


def test_equal_seeds_give_equal_runs(channels):
    def cycles(seed):
        served(channels, "core", latency=(1, 40), stall=0.5, reorder=True, seed=seed)
        return read(channels, "core", [Burst(index % 4, 8 * index, 0, 3) for index in range(50)])[0].cycles

    assert cycles(1) == cycles(1)
    assert len({cycles(seed) for seed in range(8)}) > 1


def test_what_the_memory_drives_is_seen_in_its_cycle(channels):
    served(channels, "core", latency=(3, 3))
    channels.step()
    channels.poke("core_ar__payload", int(pack(MANAGERS["core"].layouts["ar"], [Burst(1, 0, 0, 3)])[0]))
    channels.poke("core_r__ready", 1)
    channels.poke("core_ar__valid", 1)
    channels.step()
    channels.poke("core_ar__valid", 0)
    assert channels.run_until("core_r__valid", 10) == 2 and channels.memory.statistics("core")["read_beats"] == 0
    channels.step()
    assert not channels.peek("core_r__valid") and channels.memory.statistics("core")["read_beats"] == 1


def copy(model, blocks, **pokes):
    for name, value in {"source": 0, "target": 1 << 15, "blocks": blocks, "reckless": 0, "start": 1, **pokes}.items():
        model.poke(name, value)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_copy_runs_until_it_is_done(copier, settings):
    memory = served(copier, "m", **SETTINGS[settings])
    copy(copier, 40)
    calls = []
    cycles = copier.run_until("done", 9000, progress=lambda done, limit: calls.append((done, limit)))
    assert cycles > 40 * 18 and calls[-1] == (cycles, 9000)
    assert copier.peek("done") and not copier.peek("failed")
    assert (memory.bytes[1 << 15:][:40 * 64] == memory.bytes[:40 * 64]).all()
    assert copier.run_until("done", 10) == 0


def test_run_until_counts_cycles(copier):
    """With latency 1 and no stalls a block takes 8 beats each way and a cycle for each address and the answer."""
    served(copier, "m")
    copy(copier, 3)
    assert copier.run_until("done", 1000) == 1 + 3 * (1 + 8 + 1 + 8 + 1)


def test_run_until_gives_up(copier):
    served(copier, "m", latency=(50, 50))
    copy(copier, 40)
    before = copier.cycle
    with pytest.raises(OutOfCycles, match="done of test_axi_copier was zero for 300 cycles"):
        copier.run_until("done", 300)
    assert copier.cycle == before + 300


def test_reset_in_the_middle_of_a_copy(copier, rng):
    for cycles in rng.integers(1, 200, 20):
        memory = served(copier, "m", latency=(1, 20), stall=0.3)
        copy(copier, 40)
        copier.step(int(cycles))
        copier.poke("start", 0)
        copier.reset()
        assert (memory.bytes[:40 * 64] == np.random.default_rng(2).integers(0, 256, SIZE, np.uint8)[:40 * 64]).all()
        copy(copier, 3)
        copier.run_until("done", 3000)
        assert (memory.bytes[1 << 15:][:192] == memory.bytes[:192]).all() and not copier.peek("failed")


def test_a_reset_forgets_what_is_outstanding(channels):
    served(channels, "core", latency=(30, 30))
    bursts = pack(MANAGERS["core"].layouts["ar"], [Burst(1, 0, 7, 3)] * 5)
    channels.streams({"core_ar": bursts}, {"core_r": 3}, max_cycles=100)
    channels.reset()
    channels.step(100)
    assert not channels.peek("core_r__valid")
    assert len(read(channels, "core", [Burst(2, 0, 0, 3)])[1]) == 1


@pytest.mark.parametrize("run", [
    lambda model: model.step(1000), lambda model: model.run_until("done", 1000), lambda model: model.vectors({}, [], 1000)],
    ids=["step", "run_until", "vectors"])
def test_a_broken_rule_is_reported_by_whatever_runs(copier, run):
    served(copier, "m")
    before = copier.cycle
    copy(copier, 1, reckless=1)
    with pytest.raises(BusRuleBroken, match=rf"anager m .*cycle {before + 10}.*channel aw: burst crosses a 4 KiB boundary"):
        run(copier)
    served(copier, "m")
    copy(copier, 1)  # after a reset it is as good as new
    assert copier.run_until("done", 100)


def address(**fields):
    return {"id": 1, "addr": 0, "len": 0, "size": 3, "burst": 1} | fields


def beat(**fields):
    return {"data": 0, "strb": 255, "last": 1} | fields


# What goes wrong: the message, the channel, and what stands on it cycle by cycle; None where valid is low.
BROKEN_ADDRESSES = [
    ("burst type is reserved", [address(burst=3)]),
    ("burst of several beats is not incrementing", [address(burst=0, len=1)]),
    ("burst of several beats is not incrementing", [address(burst=2, len=1)]),
    ("size is larger than the data width", [address(size=4)]),
    ("address of several beats is not aligned", [address(addr=4, len=1)]),
    ("burst crosses a 4 KiB boundary", [address(addr=4088, len=1)]),
    ("burst crosses a 4 KiB boundary", [address(addr=2048 + 8, len=255)]),
]
BROKEN_WRITES = [
    ("last is high before the last beat", [address(len=3)], [beat(last=0), beat()]),
    ("last is low in the last beat", [address(len=1)], [beat(last=0), beat(last=0)]),
    ("last is high before the last beat", [None] * 5 + [address(len=1)], [beat()]),
    ("strobes outside the beat's byte lanes", [address(size=1)], [beat(strb=0b111)]),
    ("strobes outside the beat's byte lanes", [address(size=1, len=1)], [beat(strb=0b11, last=0), beat(strb=0b11)]),
    ("strobes outside the beat's byte lanes", [address(addr=3)], [beat(strb=0b11111100)]),
    ("no address within 1000 cycles", [], [beat()]),
]


def columns(channel, items, count=0):
    """Arrays for ``Model.vectors`` that put the items on one of ``core``'s channels, cycle by cycle."""
    items = [*items, *[None] * (count - len(items))]
    layout = MANAGERS["core"].layouts[channel]
    empty = dict.fromkeys(layout, 0)
    return {f"core_{channel}__payload": pack(layout, [item or empty for item in items]),
            f"core_{channel}__valid": np.array([item is not None for item in items])}


def break_a_rule(model, message, channel, inputs, cycles=1100, **arguments):
    served(model, "core", **arguments)
    model.poke("unlimited", 1)
    model.step(2)
    with pytest.raises(BusRuleBroken, match=rf"anager core .*cycle \d+.*channel {channel}: {message}"):
        model.vectors(inputs, [], cycles)
    model.reset()


@pytest.mark.parametrize("channel", ["ar", "aw"])
@pytest.mark.parametrize("message, items", BROKEN_ADDRESSES)
def test_a_broken_address_is_caught(channels, channel, message, items):
    break_a_rule(channels, message, channel, columns(channel, items))


@pytest.mark.parametrize("message, addresses, beats", BROKEN_WRITES)
def test_a_broken_write_is_caught(channels, message, addresses, beats):
    count = max(len(addresses), len(beats))
    break_a_rule(channels, message, "w", columns("aw", addresses, count) | columns("w", beats, count))


@pytest.mark.parametrize("channel, item, change", [
    *(("ar", address(), {name: value}) for name, value in (("id", 2), ("addr", 8), ("len", 1), ("size", 2), ("burst", 0))),
    ("aw", address(), {"addr": 8}), ("w", beat(last=0), {"data": 1}), ("w", beat(last=0), {"strb": 1}),
    ("w", beat(last=0), {"last": 1})])
def test_a_payload_that_changes_before_ready_is_caught(channels, channel, item, change):
    break_a_rule(channels, "payload changed before ready", channel, columns(channel, [item, item | change] * 10), stall=0.95)


@pytest.mark.parametrize("channel, item", [("ar", address()), ("aw", address()), ("w", beat())])
def test_a_valid_that_drops_before_ready_is_caught(channels, channel, item):
    break_a_rule(channels, "valid dropped before ready", channel, columns(channel, [item, None] * 10), stall=0.95)


@pytest.mark.parametrize("channel, item", [("ar", address()), ("aw", address()), ("w", beat())])
def test_a_valid_in_reset_is_caught(channels, channel, item):
    """From the second cycle on: a synchronous reset needs the first."""
    inputs = columns(channel, [item] * 5)
    break_a_rule(channels, "valid is high while rst is high", channel, inputs | {"rst": np.ones(5, int)})
    channels.poke("rst", 0)


@pytest.mark.parametrize("channel", ["ar", "aw"])
def test_the_65th_outstanding_burst_is_caught(channels, channel):
    served(channels, "core")
    channels.poke("unlimited", 1)
    channels.step()
    channels.vectors(columns(channel, [address()] * 64, 90), [])
    assert channels.memory.statistics("core")[{"ar": "most_reads", "aw": "most_writes"}[channel]] == 64
    break_a_rule(channels, "more than 64 bursts outstanding", channel, columns(channel, [address()] * 65))


def test_a_rule_broken_in_a_run_of_streams_is_caught(channels):
    served(channels, "core")
    with pytest.raises(BusRuleBroken, match="burst type is reserved"):
        read(channels, "core", [Burst(1, 0, 0, 3), Burst(1, 0, 0, 3, burst=3)])
    served(channels, "core")
    assert len(read(channels, "core", [Burst(1, 0, 0, 3)])[1]) == 1


def test_a_manager_that_asks_for_what_it_may_is_not_caught(channels):
    """The last burst of a page, the longest one, a single beat of another type, a single one that is not aligned."""
    served(channels, "core")
    bursts = [Burst(1, 4088, 0, 3), Burst(1, 2048, 255, 3), Burst(1, 8, 0, 3, burst=0), Burst(1, 8, 0, 3, burst=2),
              Burst(1, 4095, 0, 3), Burst(1, 3, 0, 1)]
    _, beats = read(channels, "core", bursts)
    assert len(beats) == 261


@pytest.mark.parametrize("arguments, field", [
    ({"latency": (0, 3)}, "latency"), ({"latency": (4, 3)}, "latency"), ({"stall": 1.0}, "stall"), ({"stall": -0.1}, "stall")])
def test_wrong_settings_are_rejected(channels, arguments, field):
    with pytest.raises(SpecError, match=field):
        Memory(channels, ["core"], SIZE, **arguments)


def test_an_unknown_manager_is_rejected(channels):
    with pytest.raises(KeyError, match="test_axi_channels has no port nobody__arvalid"):
        Memory(channels, ["nobody"], SIZE)
    served(channels, "core")
