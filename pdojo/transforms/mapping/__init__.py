"""Mapping: how the iterations of a scope are instantiated, on a CPU, a graphics processor, a Snitch core."""
