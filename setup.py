"""The packages of the wheel: `pdojo`, and the folder `tools` under the name `pdojo_tools`."""

from setuptools import find_packages, setup

tools = ["pdojo_tools", *(f"pdojo_tools.{name}" for name in find_packages("tools"))]
setup(packages=[*find_packages(include=["pdojo", "pdojo.*"]), *tools], package_dir={"pdojo_tools": "tools"})
