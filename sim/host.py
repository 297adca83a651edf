"""The host: reads and writes a model's registers by name, over AXI4."""

from spec.errors import SpecError
from spec.registers import REGISTER_MAP

from .errors import HostError

__all__ = ["Host"]

_MAP = {register.name: register for register in REGISTER_MAP}
_PATIENCE = 1000


class Host:
    """Accesses the registers of ``spec.registers``; the model runs on meanwhile, a few cycles for each access.

    Parameters
    ----------
    model : sim.model.Model
    prefix : str
        What the names of the AXI4 subordinate's ports begin with.
    """

    def __init__(self, model, prefix="host"):
        self._model, self._prefix = model, prefix
        for channel in ("aw", "ar"):
            self._set(**{f"{channel}size": 2, f"{channel}burst": 1})

    def read(self, name, index=0):
        """A register's value.

        Raises
        ------
        SpecError
            No such register, or not so many of it.
        sim.errors.HostError
            An answer with an error, or none within 1,000 cycles.
        """
        self._set(araddr=self._address(name, index), arvalid=1, rready=1)
        self._until("arready", name)
        self._set(arvalid=0)
        self._until("rvalid", name, step=False)
        value, response = self._get("rdata"), self._get("rresp")
        self._model.step()
        self._set(rready=0)
        return self._checked(name, response, value)

    def write(self, name, value, index=0):
        """Write a register; errors as for :meth:`read`, and a value that does not fit 32 bits."""
        if not 0 <= value < 1 << 32:
            raise SpecError(name, value, f"0 to {(1 << 32) - 1}")
        self._set(awaddr=self._address(name, index), awvalid=1)
        self._until("awready", name)
        self._set(awvalid=0, wdata=value, wstrb=0xF, wlast=1, wvalid=1, bready=1)
        self._until("wready", name)
        self._set(wvalid=0)
        self._until("bvalid", name, step=False)
        response = self._get("bresp")
        self._model.step()
        self._set(bready=0)
        self._checked(name, response)

    def read64(self, name, index=0):
        """The number in registers ``<name>_low`` and ``<name>_high``."""
        return self.read(f"{name}_low", index) | self.read(f"{name}_high", index) << 32

    def write64(self, name, value, index=0):
        """Write registers ``<name>_low`` and ``<name>_high``."""
        self.write(f"{name}_low", value & 0xFFFF_FFFF, index)
        self.write(f"{name}_high", value >> 32, index)

    def _address(self, name, index):
        if name not in _MAP:
            raise SpecError("register", name, "a name of spec.registers")
        if not 0 <= index < _MAP[name].count:
            raise SpecError(f"index of {name}", index, f"0 to {_MAP[name].count - 1}")
        return _MAP[name].address(index)

    def _set(self, **values):
        for name, value in values.items():
            self._model.poke(f"{self._prefix}__{name}", value)

    def _get(self, name):
        return self._model.peek(f"{self._prefix}__{name}")

    def _until(self, name, register, step=True):
        for _ in range(_PATIENCE):
            if self._get(name):
                if step:
                    self._model.step()
                return
            self._model.step()
        raise HostError(f"Register {register}: {name} did not come within {_PATIENCE} cycles")

    @staticmethod
    def _checked(name, response, value=None):
        if response:
            raise HostError(f"Register {name}: answered with error {response}")
        return value
