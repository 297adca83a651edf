"""The borders of a module as a cell of a library, so that a timer sees through them without what lies inside."""

from dataclasses import dataclass

__all__ = ["Macro", "macro_library"]

TRANSITION_NS = 0.03
"""Slew at every border, of a lightly loaded gate at 45 nm."""

CAPACITANCE_PF = 0.001
"""Load that every input of a module is to what drives it: mapping puts a small buffer behind an input of many loads."""


@dataclass(frozen=True)
class Macro:
    """A module or memory as its neighbours see it. Times are in ns; a bit that is not named has no such path.

    Parameters
    ----------
    name : str
    ports : dict of str to (str, int or None)
        Direction and width; None for one bit that is no vector.
    clocked : bool
        Whether it has a port ``clk``.
    setup : dict of str to float
        By bit of an input, ``port[3]``: how long before the clock's edge it must be there.
    arrival : dict of str to float
        By bit of an output: how long after the clock's edge it is there.
    through : dict of (str, str) to float
        By input port and bit of an output: the longest path that meets no register.
    """

    name: str
    ports: dict
    clocked: bool
    setup: dict
    arrival: dict
    through: dict

    def bits(self, port):
        """Names of a port's bits, the lowest first."""
        width = self.ports[port][1]
        return [port] if width is None else [f"{port}[{bit}]" for bit in range(width)]

    def liberty(self):
        """The cell as Liberty text."""
        # Without a register behind its outputs, OpenSTA takes a cell with set-up times and through paths for a latch.
        register = ['ff (IQ, IQN) { clocked_on : "clk"; next_state : "IQ"; }'] if self.arrival else []
        return "\n".join([f"cell ({self.name}) {{", *register, *(self._port(port) for port in self.ports), "}"])

    def _port(self, port):
        direction, width = self.ports[port]
        kind = f"direction : {direction};" + (f" capacitance : {CAPACITANCE_PF};" if direction == "input" else "")
        if port == "clk" and self.clocked:
            kind += " clock : true;"
        pins = "\n".join(f"pin ({bit}) {{ {kind}{self._paths(bit)} }}" for bit in self.bits(port))
        return pins if width is None else f"bus ({port}) {{ bus_type : bits_{width}; {kind}\n{pins} }}"

    def _paths(self, bit):
        paths = []
        if bit in self.setup:
            paths.append(_timing("clk", "setup_rising", _scalars("constraint", self.setup[bit])))
        if bit in self.arrival:
            paths.append(' function : "IQ";' + _timing("clk", "rising_edge", _delays(self.arrival[bit])))
        for (port, output), delay in self.through.items():
            if output == bit:
                paths.append(_timing(" ".join(self.bits(port)), "combinational", _delays(delay)))
        return "".join(paths)


def macro_library(macros):
    """A Liberty library of :class:`Macro` cells, in ns and pF; without any it still sets these units."""
    widths = sorted({width for macro in macros for _, width in macro.ports.values() if width is not None})
    return "\n".join([
        "library (macros) {", 'time_unit : "1ns"; capacitive_load_unit (1, pf); voltage_unit : "1V";',
        'current_unit : "1mA"; pulling_resistance_unit : "1kohm"; delay_model : table_lookup;',
        "input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;",
        "output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;",
        "slew_lower_threshold_pct_rise : 20; slew_lower_threshold_pct_fall : 20;",
        "slew_upper_threshold_pct_rise : 80; slew_upper_threshold_pct_fall : 80;",
        *(f"type (bits_{width}) {{ base_type : array; data_type : bit; bit_width : {width}; bit_from : {width - 1}; "
          "bit_to : 0; downto : true; }" for width in widths),
        *(macro.liberty() for macro in macros), "}", ""])


def _timing(related, kind, tables):
    return f'\n  timing () {{ related_pin : "{related}"; timing_type : {kind}; {tables} }}'


def _scalars(what, value):
    return " ".join(f'{edge}_{what} (scalar) {{ values ("{value:.6f}"); }}' for edge in ("rise", "fall"))


def _delays(value):
    cells = " ".join(f'cell_{edge} (scalar) {{ values ("{value:.6f}"); }}' for edge in ("rise", "fall"))
    return f"{cells} {_scalars('transition', TRANSITION_NS)}"
