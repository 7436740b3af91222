"""The body of a device function under construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pdojo.backends.c.code import FunctionText, variable
from pdojo.backends.common.addresses import Address
from pdojo.backends.gpu.homes import Copies, Own
from pdojo.backends.gpu.launches import Launch
from pdojo.backends.gpu.numbering import iteration
from pdojo.dialect.affine import const
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Scope


@dataclass(eq=False)
class DeviceCode(FunctionText):
    """A device function under construction, with the memory of a thread and the vectors that have been loaded."""

    own: dict[Buffer, Own] = field(default_factory=dict[Buffer, Own])
    """The part of each buffer that a thread owns."""
    copies: Mapping[Buffer, Copies] = field(default_factory=dict[Buffer, Copies])
    """Heap buffers with a copy for each thread or block."""
    loaded: dict[Access, str] = field(default_factory=dict[Access, str])
    """Accesses whose element in the current lane is already in a variable."""

    def place(self, access: Access, leaf: Leaf) -> Address:
        """The address of an access, within the thread's part if the buffer has one."""
        part = self.own.get(access.array.buffer)
        if part is None:
            place, copies = super().place(access, leaf), self.copies.get(access.array.buffer)
            return place if copies is None else replace(place, linear=place.linear + copies.offset)
        total = const(0)
        for index, stride in zip(part.indices[access], part.layout.strides, strict=True):
            total = total + index * stride
        return Address(total)

    def element(self, access: Access, leaf: Leaf) -> str:
        """The accessed element."""
        if access in self.loaded:
            return self.loaded[access]
        part = self.own.get(access.array.buffer)
        if part is not None and part.layout.size == 1:
            return self.names[access.array.buffer]
        return super().element(access, leaf)

    def unrolled(self, extent: int) -> None:
        """Let the compiler unroll the loop that follows."""
        request = self.spelling.unroll(extent)
        if request is not None:
            self.line(request)

    def thread_variable(self, scope: Scope, found: Launch) -> None:
        """Declare the variable of a thread scope."""
        self.line(f"const int {variable(scope.depth)} = {iteration(found, scope).text};")
