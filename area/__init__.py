"""What a design costs: area, clock and power on a cell library."""
