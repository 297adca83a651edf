"""The AXI4 bus as ports: full names, one member a signal, so that generated Verilog connects by name."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BURST_FIXED", "BURST_INCR", "BURST_WRAP", "RESP_DECERR", "RESP_OKAY", "RESP_SLVERR", "axi_read_signature",
           "axi_signature"]

BURST_FIXED, BURST_INCR, BURST_WRAP = 0, 1, 2
RESP_OKAY, RESP_SLVERR, RESP_DECERR = 0, 2, 3


def _address(prefix, address_bits, id_bits):
    return {f"{prefix}valid": Out(1), f"{prefix}ready": In(1), f"{prefix}id": Out(id_bits),
            f"{prefix}addr": Out(address_bits), f"{prefix}len": Out(8), f"{prefix}size": Out(3), f"{prefix}burst": Out(2)}


def _read(address_bits, data_bits, id_bits):
    return {**_address("ar", address_bits, id_bits), "rvalid": In(1), "rready": Out(1), "rid": In(id_bits),
            "rdata": In(data_bits), "rresp": In(2), "rlast": In(1)}


def axi_read_signature(address_bits, data_bits, id_bits):
    """The two read channels, as the manager sees them."""
    return wiring.Signature(_read(address_bits, data_bits, id_bits))


def axi_signature(address_bits, data_bits, id_bits):
    """All five channels, as the manager sees them (Arm IHI 0022, without the optional signals)."""
    return wiring.Signature({
        **_address("aw", address_bits, id_bits),
        "wvalid": Out(1), "wready": In(1), "wdata": Out(data_bits), "wstrb": Out(data_bits // 8), "wlast": Out(1),
        "bvalid": In(1), "bready": Out(1), "bid": In(id_bits), "bresp": In(2),
        **_read(address_bits, data_bits, id_bits)})
