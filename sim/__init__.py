"""Running the hardware: builds, drivers, benches, demonstrations."""
