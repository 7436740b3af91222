"""The machine descriptions that pdojo brings: one TOML file each, named like the machine."""
