"""What cocotb benches are made of: clock and reset, drivers and monitors of streams, and a scoreboard.

With a clock that cocotb drives, a value read right after ``RisingEdge`` is the one from before the edge, and a value
written there applies after it. So every loop here reads, decides and writes at the edge.
"""

import random
from collections import deque

import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

__all__ = ["start", "pack", "unpack", "StreamDriver", "StreamMonitor", "Scoreboard"]


async def start(dut, cycles=2):
    """Start the clock, one nanosecond a cycle, and hold ``rst`` for some cycles. Returns with it just released."""
    Clock(dut.clk, 1, "ns").start()
    dut.rst.value = 1
    await ClockCycles(dut.clk, cycles)
    dut.rst.value = 0


def pack(row):
    """Numbers of a numpy row as the integer that a wide port takes, first element lowest."""
    return int.from_bytes(np.ascontiguousarray(row).tobytes(), "little")


def unpack(value, dtype, count):
    """A wide port's integer as ``count`` numbers of a numpy type, the lowest first; ``pack`` backwards."""
    dtype = np.dtype(dtype)
    return np.frombuffer(int(value).to_bytes(dtype.itemsize * count, "little"), dtype)


class StreamDriver:
    """Sends payloads into a stream of the design.

    ``valid`` is withheld at random, never taken back, and the payload is noise while it is low.

    Parameters
    ----------
    dut
        The design, with ports ``<name>__payload``, ``<name>__valid`` and ``<name>__ready``, and ``clk``.
    name : str
        The stream.
    stall : float
        How often a new ``valid`` is withheld, from 0 to below 1.
    on_transfer : callable
        Called with every payload that the design accepts.
    """

    def __init__(self, dut, name, *, stall=0.0, on_transfer=None):
        self._clk = dut.clk
        self._payload, self._valid, self._ready = _members(dut, name)
        self._valid.value = 0  # an earlier test may have left it high
        self._stall = _rate(name, stall)
        self._on_transfer = on_transfer
        # Of its own, so that what else a bench draws does not shift the stalls; seeded by the bench's seed.
        self._random = random.Random(f"{random.getrandbits(64)} {name}")

    async def send(self, payloads):
        """Send integers one after another; returns at the edge that transfers the last one."""
        for payload in payloads:
            while self._random.random() < self._stall:
                self._payload.value = self._random.getrandbits(len(self._payload))
                await RisingEdge(self._clk)
            self._payload.value = payload
            self._valid.value = 1
            await RisingEdge(self._clk)
            while not self._ready.value:
                await RisingEdge(self._clk)
            self._valid.value = 0
            if self._on_transfer:
                self._on_transfer(payload)


class StreamMonitor:
    """Takes payloads from a stream of the design, with ``ready`` withheld at random, and checks the stream's rules.

    Parameters
    ----------
    dut, name, stall
        As for ``StreamDriver``; here ``ready`` is withheld.
    on_transfer : callable
        Called with every payload taken.
    """

    def __init__(self, dut, name, *, stall=0.0, on_transfer=None):
        self._clk = dut.clk
        self._name = name
        self._payload, self._valid, self._ready = _members(dut, name)
        self._ready.value = 0  # an earlier test may have left it high
        self._stall = _rate(name, stall)
        self._on_transfer = on_transfer
        self._random = random.Random(f"{random.getrandbits(64)} {name}")
        self._held = None  # payload that is valid and not yet accepted

    async def receive(self, count, max_cycles):
        """Take ``count`` payloads as integers; ``ready`` is low before and after.

        Raises
        ------
        AssertionError
            The design dropped ``valid`` or changed a payload before it was accepted, or ``max_cycles`` passed.
        """
        taken = []
        for _ in range(max_cycles):
            ready = self._random.random() >= self._stall
            self._ready.value = ready
            await RisingEdge(self._clk)
            valid, payload = bool(self._valid.value), int(self._payload.value)
            if self._held is not None:
                assert valid, f"Stream {self._name} dropped valid before ready"
                assert payload == self._held, (f"Stream {self._name} changed its payload before ready, from "
                                               f"{self._held:#x} to {payload:#x}")
            self._held = payload if valid and not ready else None
            if valid and ready:
                taken.append(payload)
                if self._on_transfer:
                    self._on_transfer(payload)
                if len(taken) == count:
                    self._ready.value = 0
                    return taken
        raise AssertionError(f"Stream {self._name} gave {len(taken)} of {count} payloads in {max_cycles} cycles")


class Scoreboard:
    """Compares what a design gave with what a golden model says it must.

    Parameters
    ----------
    golden : callable
        Called with what went in, in order; returns the list of what must come out for it.
    """

    def __init__(self, golden):
        self._golden = golden
        self._expected = deque()
        self._given = deque()  # not compared yet: a monitor may wake before the driver that caused its output
        self._compared = 0

    def sent(self, payload):
        """Note what went in; made for a driver's ``on_transfer``."""
        self._expected.extend(self._golden(payload))
        self._compare()

    def received(self, payload):
        """Note what came out; made for a monitor's ``on_transfer``."""
        self._given.append(payload)
        self._compare()

    def finish(self):
        """Check that something was compared and nothing is left over on either side."""
        assert self._compared, "The scoreboard compared nothing"
        assert not self._expected, f"{len(self._expected)} outputs are missing after {self._compared} good ones"
        assert not self._given, f"{len(self._given)} outputs too many after {self._compared} good ones"

    def _compare(self):
        while self._expected and self._given:
            expected, given = self._expected.popleft(), self._given.popleft()
            assert given == expected, f"Output {self._compared} is {given:#x}, not {expected:#x}"
            self._compared += 1


def _members(dut, name):
    return [getattr(dut, f"{name}__{member}") for member in ("payload", "valid", "ready")]


def _rate(name, stall):
    if not 0 <= stall < 1:
        raise ValueError(f"Stall of stream {name} must be from 0 to below 1, not {stall}")
    return stall
