"""The tensor engine: processing element, tile, array, engine."""
