"""Between the DMA engines and the groups of partitions of both buffers."""

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..round_robin import RoundRobin
from .local_access import access_port

__all__ = ["AccessCrossbar", "group_size"]


def group_size(core, partitions):
    """Partitions of a group, of which there are as many as DMA engines; the last may have less."""
    return -(-partitions // core.dma_engines)


class AccessCrossbar(wiring.Component):
    """Brings each engine's access to the group of its partition; engines that want the same group take turns.

    Latency: none; a read's data in the cycle after, as the group gives it. Throughput: an access a cycle and group.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    engines : dma_engines x In(access_port)
    sbuf, psum : dma_engines x Out(access_port)
        The groups of the two buffers.
    """

    module_name = "onc_access_crossbar"

    def __init__(self, core):
        self._core = core
        ports = access_port()
        super().__init__({"engines": In(ports).array(core.dma_engines), "sbuf": Out(ports).array(core.dma_engines),
                          "psum": Out(ports).array(core.dma_engines)})

    def elaborate(self, platform):
        m = Module()
        core, engines = self._core, self.engines
        groups = [(0, index, group, core.rows) for index, group in enumerate(self.sbuf)]
        groups += [(1, index, group, core.cols) for index, group in enumerate(self.psum)]
        readies = [[] for _ in engines]
        chosen = [Signal(range(len(groups)), name=f"chosen_{index}") for index in range(len(engines))]
        for number, (psum, index, group, partitions) in enumerate(groups):
            m.submodules[f"turn_{number}"] = turn = RoundRobin(len(engines))
            first, each = index * group_size(core, partitions), group_size(core, partitions)
            for engine, port in enumerate(engines):
                access = port.access
                m.d.comb += turn.requests[engine].eq(port.valid & (access.psum == psum) & (access.partition >= first)
                                                     & (access.partition < first + each))
                readies[engine].append(turn.grants[engine] & group.ready)
                with m.If(turn.grants[engine]):
                    m.d.comb += group.access.eq(access)
                    m.d.sync += chosen[engine].eq(number)
            m.d.comb += [group.valid.eq(turn.any), turn.taken.eq(group.ready)]
        for engine, port in enumerate(engines):
            m.d.comb += [port.ready.eq(Cat(readies[engine]).any()),
                         port.data.eq(Array(group.data for _, _, group, _ in groups)[chosen[engine]])]
        return m
