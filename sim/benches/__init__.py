"""cocotb benches that can be run by name, one a module; ``sim.registry`` says what such a module holds."""
