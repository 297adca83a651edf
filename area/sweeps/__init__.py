"""Design-space sweeps: many configurations measured, the figures kept, compared and shown."""
