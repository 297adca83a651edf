"""Sequencers of two streams with their semaphores and a program memory that answers late, as one design."""

import functools

import numpy as np
from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hdl.control.layouts import BEATS, CAUSE_BITS, INSTRUCTION_BITS
from hdl.control.semaphores import Semaphores
from hdl.control.sequencer import Sequencer
from hdl.emit import emit
from sim.model import Model
from spec.isa import INSTRUCTION_BYTES
from spec.memory import ADDRESS_BITS

__all__ = ["BREAKPOINT", "STREAMS", "Machine", "PROGRAM_INSTRUCTIONS", "machine"]

STREAMS = ("tensor", "sync")
PROGRAM_INSTRUCTIONS = 64
BREAKPOINT = 2 * INSTRUCTION_BYTES
_POSITION = INSTRUCTION_BYTES.bit_length() - 1


class ControlBench(wiring.Component):
    """``go_<stream>`` lets that stream's memory port and engine move; ``engine_<stream>`` is what the engine answers, and
    ``finish_<stream>`` says that it is done with a load."""

    module_name = "test_control"

    def __init__(self):
        members = {"write": In(1), "write_address": In(6), "write_data": In(INSTRUCTION_BITS), "semaphore": In(8),
                   "semaphore_value": Out(16)}
        for name in STREAMS:
            members |= {f"start_{name}": In(1), f"start_address_{name}": In(ADDRESS_BITS), f"go_{name}": In(1),
                        f"halt_{name}": In(1), f"resume_{name}": In(1), f"step_{name}": In(1), f"breakpoint_{name}": In(1),
                        f"engine_{name}": In(CAUSE_BITS), f"running_{name}": Out(1), f"cause_{name}": Out(CAUSE_BITS),
                        f"address_{name}": Out(ADDRESS_BITS), f"stopped_{name}": Out(1), f"finish_{name}": In(1), f"interrupt_{name}": Out(1), f"register_{name}": In(6),
                        f"value_{name}": Out(32), f"issued_{name}": Out(1), f"opcode_{name}": Out(8),
                        f"offset_{name}": Out(34)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.program = program = memory.Memory(shape=INSTRUCTION_BITS, depth=PROGRAM_INSTRUCTIONS, init=[])
        write = program.write_port()
        m.d.comb += [write.en.eq(self.write), write.addr.eq(self.write_address), write.data.eq(self.write_data)]
        m.submodules.semaphores = semaphores = Semaphores(len(STREAMS) + 1)
        m.d.comb += [semaphores.read[-1].semaphore.eq(self.semaphore),
                     self.semaphore_value.eq(semaphores.read[-1].value)]
        for index, name in enumerate(STREAMS):
            m.submodules[name] = sequencer = Sequencer(name)
            port = program.read_port(domain="comb")
            go, address, beat = getattr(self, f"go_{name}"), Signal(ADDRESS_BITS), Signal(range(BEATS))
            pending, busy = Signal(name=f"pending_{name}"), Signal(name=f"busy_{name}")
            engine, finish = getattr(self, f"engine_{name}"), getattr(self, f"finish_{name}")
            request, response = sequencer.fetch_request, sequencer.fetch_response
            sends, last = go & pending, beat == BEATS - 1
            answers = busy & go
            m.d.comb += [
                request.ready.eq(go & (~pending | last)), response.valid.eq(sends), port.addr.eq(address[_POSITION:]),
                response.payload.data.eq(port.data.word_select(beat, INSTRUCTION_BITS // BEATS)),
                response.payload.error.eq(address[_POSITION:] >= PROGRAM_INSTRUCTIONS),
                sequencer.issue.ready.eq(go & ~busy),
                sequencer.accepted.eq(answers & (engine == 0)), sequencer.refused.eq(Mux(answers, engine, 0)),
                sequencer.load_done.eq(finish), semaphores.read[index].semaphore.eq(sequencer.semaphore),
                sequencer.semaphore_value.eq(semaphores.read[index].value),
                semaphores.update[index].payload.eq(sequencer.update.payload),
                semaphores.update[index].valid.eq(sequencer.update.valid),
                sequencer.update.ready.eq(semaphores.update[index].ready),
                sequencer.start_address.eq(getattr(self, f"start_address_{name}")),
                sequencer.control.eq(Cat(getattr(self, f"{what}_{name}") for what in ("start", "halt", "resume", "step"))),
                sequencer.breakpoint_enable.eq(getattr(self, f"breakpoint_{name}")),
                sequencer.breakpoint_address.eq(BREAKPOINT),
                sequencer.register_number.eq(getattr(self, f"register_{name}")),
                getattr(self, f"value_{name}").eq(sequencer.register_value),
                getattr(self, f"issued_{name}").eq(sequencer.issue.valid & sequencer.issue.ready),
                getattr(self, f"opcode_{name}").eq(sequencer.issue.payload.header.opcode),
                getattr(self, f"offset_{name}").eq(sequencer.offsets[0]),
                getattr(self, f"interrupt_{name}").eq(sequencer.notify),
                *(getattr(self, f"{what}_{name}").eq(getattr(sequencer, what))
                  for what in ("running", "cause", "address", "stopped")),
            ]
            m.d.sync += busy.eq(Mux(go, sequencer.issue.valid & ~busy, busy))
            with m.If(sends):
                m.d.sync += [beat.eq(beat + 1), pending.eq(~last)]
            with m.If(request.valid & request.ready):
                m.d.sync += [address.eq(request.payload), pending.eq(1)]
        return m


class Machine:
    """Drives the bench: programs in, cycles, state out."""

    def __init__(self, model):
        self.model = model

    def load(self, program):
        """Write a program, zeros behind it, and reset."""
        words = np.zeros((PROGRAM_INSTRUCTIONS, INSTRUCTION_BYTES), np.uint8)
        words.reshape(-1)[:len(program)] = np.frombuffer(bytes(program), np.uint8)
        self.model.vectors({"write": np.ones(PROGRAM_INSTRUCTIONS, np.uint8), "write_address": np.arange(PROGRAM_INSTRUCTIONS),
                            "write_data": words}, [])
        self.model.vectors({"write": np.zeros(1, np.uint8)}, [])
        self.model.reset()

    def run(self, starts, cycles, stall=0.0, rng=None, engine=0, **pulses):
        """Start streams at addresses and run; every output of every cycle.

        Parameters
        ----------
        starts : dict of str to int
        cycles : int
        stall : float
            How often memory and engine stand still, drawn from ``rng``.
        engine : int
            The engines' answer: 0, or a cause.
        pulses : sequence of int
            Cycles in which an input such as ``halt_sync`` or ``finish_tensor`` is high.
        """
        inputs = {}
        for name in STREAMS:
            first = np.zeros(cycles, np.uint8)
            first[0] = name in starts
            inputs |= {f"start_{name}": first, f"start_address_{name}": np.full(cycles, starts.get(name, 0)),
                       f"go_{name}": rng.random(cycles) >= stall if stall else np.ones(cycles, bool),
                       f"engine_{name}": np.full(cycles, engine)}
        for what in ("halt", "resume", "step", "breakpoint", "finish"):
            for name in STREAMS:
                inputs[f"{what}_{name}"] = np.isin(np.arange(cycles), pulses.get(f"{what}_{name}", ()))
        outputs = [f"{what}_{name}" for name in STREAMS
                   for what in ("running", "cause", "address", "interrupt", "stopped", "issued", "opcode", "offset")]
        return self.model.vectors(inputs, outputs)

    def semaphores(self):
        """All counts."""
        return self.model.vectors({"semaphore": np.arange(256)}, ["semaphore_value"])["semaphore_value"]

    def registers(self, name):
        """All registers of a stream."""
        return self.model.vectors({f"register_{name}": np.arange(64)}, [f"value_{name}"])[f"value_{name}"]


@functools.cache
def _model():
    return Model.build(emit(ControlBench()))


def machine():
    """The machine, as after reset but for what its memory holds."""
    model = _model()
    model.reset()
    return Machine(model)
