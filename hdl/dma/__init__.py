"""DMA engines: descriptors from rings in memory, carried out between memory and the core's buffers."""
