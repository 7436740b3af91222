"""Snitch cores: RV32 with streams (SSR) and hardware loops (FREP). docs/snitch.md."""
