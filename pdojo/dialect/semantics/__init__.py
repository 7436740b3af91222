"""What programs compute: functions on NumPy arrays, interpreters, and the oracles that compare programs."""
