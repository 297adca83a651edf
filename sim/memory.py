"""Memory on a model's AXI4 ports: as fast or slow, orderly or faulty as a test wants, with a checker of the protocol."""

import numpy as np

from hdl.axi import axi_read_signature, axi_signature
from spec.errors import SpecError

from . import harness, rows

__all__ = ["Memory"]

_READ = tuple(name for name in axi_read_signature(1, 8, 1).members)
_ALL = _READ + tuple(name for name in axi_signature(1, 8, 1).members if name not in _READ)
_ORDER = ("arvalid", "arready", "arid", "araddr", "arlen", "arsize", "arburst", "rvalid", "rready", "rid", "rdata", "rresp",
          "rlast", "awvalid", "awready", "awid", "awaddr", "awlen", "awsize", "awburst", "wvalid", "wready", "wdata", "wstrb",
          "wlast", "bvalid", "bready", "bid", "bresp")
"""As the enumeration of ``axi.hpp`` has them."""


class Memory:
    """Serves AXI4 managers of a model, in every cycle that the model runs from now on.

    A burst's first beat comes ``latency`` cycles after its address, a write's answer so long after its last beat; then a
    beat a cycle. Answers under one identifier keep their order. Up to 64 bursts of each kind can be outstanding for each
    manager. A beat beyond ``size`` is answered with DECERR, one that touches a faulty byte with SLVERR: it reads zeros and
    writes nothing. Only bursts of type INCR are served; that a manager asks for nothing else, and keeps the other rules of
    the protocol, is checked: whatever runs the model raises :class:`sim.errors.BusRuleBroken`.

    Parameters
    ----------
    model : sim.model.Model
    managers : sequence of str
        What the ports' names begin with: ``dma_0`` for ``dma_0__arvalid`` and so on. Write channels may be missing.
    size : int
        Bytes.
    latency : (int, int)
        Fewest and most cycles, drawn for each burst; at least 1.
    stall : float
        How often, from 0 to below 1, a ready or a new valid is withheld.
    reorder : bool
        Whether answers under different identifiers change places.
    faulty : sequence of (int, int)
        First and end of each range of faulty bytes.
    seed : int
        Of all that is drawn.

    Attributes
    ----------
    bytes : uint8 array
        The contents, to be read and written between runs.
    """

    def __init__(self, model, managers, size, *, latency=(1, 1), stall=0.0, reorder=False, faulty=(), seed=0):
        low, high = latency
        if not 1 <= low <= high:
            raise SpecError("latency", latency, "(fewest, most) cycles from 1")
        if not 0 <= stall < 1:
            raise SpecError("stall", stall, "from 0 to below 1")
        self.bytes = np.zeros(size, np.uint8)
        self._model, self._managers = model, list(managers)
        model.memory = self
        model._code.onc_memory(model._model, harness.MemorySettings(
            self.bytes.ctypes.data, model._places.get("rst"), size, low, high, int(stall * 2**32), int(reorder), seed))
        for manager in self._managers:
            model._code.onc_memory_manager(model._model, self._fields(manager), manager.encode())
        self.faulty = faulty

    def _fields(self, manager):
        model, fields = self._model, (harness.PortPlace * len(_ORDER))()
        needed = _ALL if f"{manager}__awvalid" in model.ports else _READ
        for place, name in enumerate(_ORDER):
            port = model.ports.get(f"{manager}__{name}")
            if port is None and name in needed:
                raise KeyError(f"{model.emission.top} has no port {manager}__{name}")
            if name in needed:
                fields[place] = harness.PortPlace(model._places[port.name], rows.row_bytes(port.width))
        return fields

    @property
    def faulty(self):
        """Ranges of faulty bytes, which can be set between runs."""
        return self._faulty

    @faulty.setter
    def faulty(self, ranges):
        self._faulty = [tuple(map(int, ends)) for ends in ranges]
        held = (harness.MemoryRange * len(self._faulty))(*self._faulty)
        self._model._code.onc_memory_faulty(self._model._model, held, len(held))

    def reset(self):
        """Forget what is outstanding; the contents stay. A reset of the model does it."""
        self._model._code.onc_memory_reset(self._model._model)

    def statistics(self, manager):
        """Counts by name since the memory was made: bursts, beats and bytes each way, and most bursts outstanding."""
        counted = harness.MemoryStatistics()
        self._model._code.onc_memory_statistics(self._model._model, self._managers.index(manager), counted)
        return {name: getattr(counted, name) for name, _ in harness.MemoryStatistics._fields_}
