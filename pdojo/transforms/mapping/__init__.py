"""Mappings of scopes: how their iterations are instantiated, on a CPU, a graphics processor, a Snitch core."""
