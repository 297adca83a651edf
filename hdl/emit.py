"""Verilog out: each repeated component converted once and instantiated by name, with a file list and a manifest."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import verilog
from amaranth.hdl import ClockSignal, Instance, ResetSignal, Value
from amaranth.lib import wiring

__all__ = ["Port", "Emission", "emit", "place"]


@dataclass(frozen=True)
class Port:
    """One port of a Verilog module: ``direction`` is ``"input"`` or ``"output"``, ``width`` is in bits."""

    name: str
    direction: str
    width: int


@dataclass(frozen=True)
class Emission:
    """A design as Verilog.

    Parameters
    ----------
    top : str
        Name of the top module.
    files : dict of str to str
        Verilog text by file name, leaves first; one file a module.
    ports : tuple of Port
        Ports of the top; ``clk`` and ``rst`` where it has state.
    manifest : dict
        What a tool needs to know: top, files, ports, and the facts that the component states of itself.
    """

    top: str
    files: dict
    ports: tuple
    manifest: dict

    @property
    def content_hash(self):
        """Hash of all the Verilog; equal designs have equal hashes."""
        return hashlib.sha256("\0".join(self.files.values()).encode()).hexdigest()

    def write(self, folder):
        """Write the files, ``files.f`` and ``manifest.json`` into ``folder``, replacing an earlier emission."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {**self.files, "files.f": "".join(f"{name}\n" for name in self.files),
                  "manifest.json": json.dumps(self.manifest, indent=2) + "\n"}
        for stale in folder.glob("*.v"):
            if stale.name not in wanted:
                stale.unlink()
        for name, text in wanted.items():
            (folder / name).write_text(text)


class _Emitter:
    """The platform that components are elaborated for: collects every placed component as a module of its own."""

    def __init__(self):
        self._modules = {}

    def convert(self, component):
        """Verilog of ``component`` under its module name, once; its placed children come first."""
        name = component.module_name
        if name not in self._modules:
            text = verilog.convert(component, name=name, platform=self, emit_src=False, strip_internal_attrs=True)
            self._modules[name] = text
        return self._modules[name]

    def instance(self, component):
        """An instance, by name, of the module that ``component`` describes, wired to the component's own signals."""
        text = self.convert(component)
        # Only the first of equal components is elaborated; for the others Amaranth would warn that they are unused.
        component._MustUse__used = True
        ports = {f"{'i' if port.direction == 'input' else 'o'}_{port.name}": value
                 for port, value in _signature_ports(component)}
        if _is_clocked(component.module_name, text):
            ports |= {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        return Instance(component.module_name, **ports)

    @property
    def files(self):
        return {f"{name}.v": text for name, text in self._modules.items()}


def _signature_ports(component):
    for path, member, value in component.signature.flatten(component):
        direction = "input" if member.flow is wiring.In else "output"
        value = Value.cast(value)
        yield Port("__".join(str(part) for part in path), direction, len(value)), value


def _is_clocked(name, text):
    header = re.search(rf"^module {re.escape(name)}\((.*?)\);", text, re.M | re.S)[1]
    return re.search(r"\bclk\b", header) is not None


def place(platform, component):
    """``component`` itself in Amaranth's simulator; an instance of its module where Verilog is written.

    A parent says ``m.submodules.name = place(platform, component)`` and uses the component's signals in both cases.
    The component must have a ``module_name`` that is the same exactly where its parameters are.
    """
    return platform.instance(component) if isinstance(platform, _Emitter) else component


def emit(component):
    """Convert ``component`` and all that it places.

    Parameters
    ----------
    component : amaranth.lib.wiring.Component
        Has a ``module_name``; may have ``facts``, a dictionary for the manifest (formats, latency, parameters).

    Returns
    -------
    Emission
    """
    emitter = _Emitter()
    text = emitter.convert(component)
    ports = tuple(port for port, _ in _signature_ports(component))
    if _is_clocked(component.module_name, text):
        ports = (Port("clk", "input", 1), Port("rst", "input", 1), *ports)
    manifest = {"top": component.module_name, "files": list(emitter.files),
                "ports": [vars(port) for port in ports], **getattr(component, "facts", {})}
    return Emission(component.module_name, emitter.files, ports, manifest)
