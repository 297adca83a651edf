"""cocotb tests for the designs of ``sim_designs``; the simulator imports this, and starts faster without Amaranth."""

import cocotb
from cocotb.triggers import RisingEdge

from sim.cocotb_streams import Scoreboard, StreamDriver, StreamMonitor, start


@cocotb.test()
async def adds(dut):
    await start(dut)
    for a, b in [(1, 2), (0xFFFF, 1), (0xFFFF, 0xFFFF)]:
        dut.a.value, dut.b.value = a, b
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        assert dut.the__total.value == a + b, f"{a} + {b} gave {int(dut.the__total.value)}"


@cocotb.test()
async def reads_the_value_before_the_edge(dut):
    await start(dut)
    dut.a.value, dut.b.value = 5, 6
    await RisingEdge(dut.clk)
    assert dut.the__total.value == 0
    await RisingEdge(dut.clk)
    assert dut.the__total.value == 11


@cocotb.test()
@cocotb.parametrize(fault=range(6))
async def doubles(dut, fault):
    """Of ``Rogue``, which passes with fault 0, none, only."""
    dut.fault.value = fault
    await double(dut)


@cocotb.test()
async def doubles_patiently(dut):
    """Of ``Doubler``."""
    await double(dut)


async def double(dut):
    scoreboard = Scoreboard(lambda payload: [2 * payload])
    driver = StreamDriver(dut, "i", stall=0.3, on_transfer=scoreboard.sent)
    monitor = StreamMonitor(dut, "o", stall=0.6, on_transfer=scoreboard.received)
    await start(dut)
    sending = cocotb.start_soon(driver.send(range(0x8000, 0x8100)))
    assert await monitor.receive(256, max_cycles=3000) == list(range(0x10000, 0x10200, 2))
    await sending
    scoreboard.finish()
