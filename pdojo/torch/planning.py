"""From a graph of ATen to a plan: regions of kernels, and the calls that PyTorch runs between them.

Every call whose operator has a rule becomes an operation of a region; PyTorch runs all others. The regions are
numbered: an operation belongs to the first region after the calls of PyTorch that it depends on. Region 0 runs after
PyTorch's calls with number -1, region 1 after the calls with number 0, and so on.

Views belong to no region. Regions read through them, and PyTorch makes them only for its own calls and for results.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import attrgetter, getitem
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule, Node

from pdojo import build
from pdojo.build import Array
from pdojo.build.sizes import Open, OpenExtent, UnequalExtents, is_open
from pdojo.errors import UsageError
from pdojo.model.element_types import numpy_type
from pdojo.model.graph import Lowered, Tensor, Value
from pdojo.torch.devices import CPU, device_of
from pdojo.torch.effects import effect_of, is_write
from pdojo.torch.element_types import handle_type, memory_order, values_of
from pdojo.torch.expansions import PRODUCTS, Expansion, expansion
from pdojo.torch.fallbacks import warn_of_failure
from pdojo.torch.keys import (
    Key,
    check_tensor,
    is_without_elements,
    key_of,
    know_results,
    new_tensor,
    results_of,
    strided_order,
    tensor_of,
)
from pdojo.torch.lowering import Expanded, Seen, Slot, call_of, lowering, transposition, unread_operands, view_step
from pdojo.torch.operators.registry import RULES, Call, Rule, UnsupportedCall
from pdojo.torch.plans import Fallback, Plan, Region
from pdojo.torch.symbols import Example, OpenTensor, is_example


def plan(module: GraphModule, static: dict[int, torch.Tensor]) -> Plan:
    """The plan of a graph of ATen whose nodes have concrete tensors without memory (`meta["val"]`).

    `static` are tensors with known values, by the position of their placeholder.
    """
    return _Planner(module, static).plan()


class _Planner:
    def __init__(self, module: GraphModule, static: dict[int, torch.Tensor]) -> None:
        self.module = module
        self.given = static
        self.device = next((device_of(node) for node in module.graph.nodes), CPU)
        """The device of all kernels."""
        self.static: dict[Key, torch.Tensor] = {}
        self.expanded: set[Node] = set()
        """Calls with known results that products compute."""
        self.numbers: dict[Node, Any] = {}
        self.regions: dict[int, Region] = {}
        self.calls: dict[int, list[Node]] = {}
        self.views: dict[Node, Key] = {}
        self.generated: dict[Node, Array] = {}
        self.closed: dict[Node, str] = {}
        self.fallbacks: list[Fallback] = []
        self.levels: dict[Node, int] = {}
        """The regions of operations, and the numbers of PyTorch's calls."""
        self.lowered: set[Node] = set()
        self.last_effect = -1
        """The number of the last call with effects."""
        self.last_write = -1
        """The number of the last call that wrote to its operands."""

    def plan(self) -> Plan:
        outputs: tuple[Any, ...] = ()
        placeholders = 0
        for node in self.module.graph.nodes:
            match node.op:
                case "placeholder":
                    self._placeholder(node, placeholders)
                    placeholders += 1
                case "get_attr":
                    self._attribute(node)
                case "call_function":
                    self._call(node)
                case "output":
                    outputs = tuple(node.args[0])
                case other:
                    raise AssertionError(other)
        made = Plan(
            self.module,
            self.static,
            self.numbers,
            self.regions,
            self.calls,
            self.views,
            self.generated,
            self.closed,
            self.fallbacks,
            outputs,
        )
        made.exported = self._exported(outputs)
        self._forget_expanded()
        return made

    def base(self, key: Key) -> Key:
        """The tensor that a view is a view of, through all views."""
        while key[0] in self.views:
            key = self.views[key[0]]
        return key

    def _placeholder(self, node: Node, position: int) -> None:
        value = node.meta["val"]
        if not is_example(value):
            if not isinstance(value, torch.SymInt):  # One that is no extent comes as an argument.
                self.numbers[node] = value
        elif position in self.given:
            self.static[node, 0] = self.given[position]

    def _attribute(self, node: Node) -> None:
        value = attrgetter(str(node.target))(self.module)
        if isinstance(value, torch.Tensor):
            self.static[node, 0] = value
        else:
            self.numbers[node] = value

    def _call(self, node: Node) -> None:
        know_results(node)
        value = node.meta.get("val")
        if key_of(node)[0] is not node:
            source, index = key_of(node)
            if (source, index) in self.static:
                self.static[node, 0] = self.static[source, index]
            return
        if isinstance(value, int | float | bool | Open):
            self.numbers[node] = value
            return
        reason = "" if node.target is getitem else effect_of(node) or self._without_effects(node)
        if reason is not None:
            self._leave(node, reason)

    def _without_effects(self, node: Node) -> str | None:
        """Compute a call now, or make it an operation or a view; the reason if PyTorch has to run it."""
        if self._is_empty(node):
            return None
        read = self._read(node)
        with_elements = [key for key in read if not is_without_elements(tensor_of(key))]
        if all(key in self.static for key in with_elements) and not self._depends_on_sizes(node):
            self._evaluate(node)
            return None
        try:
            if read:
                self._lower(node, read)
            else:
                self._generate(node)
        except UnsupportedCall as error:
            return str(error)
        except UsageError as error:
            if isinstance(error, OpenExtent | UnequalExtents):
                self.closed[node] = str(error)
            return f"{node.target}: {error}"
        except Exception as error:  # noqa: BLE001  # an error of a rule must not break the user's model
            warn_of_failure([node], error)
            return f"{node.target}: its rule failed"
        return None

    def _leave(self, node: Node, reason: str) -> None:
        """Let PyTorch run a call; calls with effects keep their order.

        A call that writes to its operands follows all calls before it, and precedes all after it.
        """
        sources = [key_of(each) for each in node.all_input_nodes if each not in self.numbers]
        bases = [self.base(source)[0] for source in sources if source not in self.static]
        level = max((self.levels.get(each, -1) for each in bases), default=-1)
        level = max(level, self.last_write)
        if effect_of(node):
            level = self.last_effect = max(level, self.last_effect)
        if is_write(node):
            level = self.last_effect = self.last_write = max(self.levels.values(), default=-1)
        self.levels[node] = level
        self.calls.setdefault(level, []).append(node)
        self.fallbacks.append(Fallback(node, reason))

    def _is_empty(self, node: Node) -> bool:
        """Whether no result of a call has elements; such results are known."""
        results = results_of(node.meta.get("val"))
        if not results or any(not is_without_elements(each) for each in results):
            return False
        for number, each in enumerate(results):
            self.static[node, number] = new_tensor(each)
        return True

    def _read(self, node: Node) -> list[Key]:
        """The tensors of which a call reads elements."""
        unread = unread_operands(node)
        return [key_of(each) for each in node.all_input_nodes if each not in self.numbers and each not in unread]

    def _depends_on_sizes(self, node: Node) -> bool:
        """Whether the shape of a result, or a number that a call takes, depends on sizes."""
        numbers = [self.numbers[each] for each in node.all_input_nodes if each in self.numbers]
        results = [each for each in results_of(node.meta.get("val")) if is_example(each)]
        return is_open(numbers) or any(isinstance(each, OpenTensor) for each in results)

    def _generate(self, node: Node) -> None:
        """Record a call that reads no elements. Raises UsageError if no kernel can be made of it."""
        rule = RULES.get(str(node.target))
        if rule is None or not rule.generates:
            raise UnsupportedCall(f"{node.target}: its result depends on sizes, and is no part of a kernel")
        call = call_of(node)

        def argument(each: Node) -> Any:
            return self.numbers.get(each)

        arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), argument)
        made: Any = rule.function(call, *arguments, **keywords)
        assert isinstance(made, Array)
        self.generated[node] = build.cast(made, call.dtype)

    def _evaluate(self, node: Node) -> None:
        """Compute a call whose operands are known; only operands of which no element is read may be unknown."""

        def operand(argument: Node) -> Any:
            if argument in self.numbers or key_of(argument) in self.static:
                return self._known(argument)
            return new_tensor(tensor_of(key_of(argument)))

        arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), operand)
        with torch.no_grad():
            made: Any = node.target(*arguments, **keywords)
        for number, each in enumerate(results_of(made)):
            if each is not None:  # A gradient that is not asked for.
                is_zero = torch._is_zerotensor(each)
                zeros = torch.zeros(each.shape, dtype=each.dtype, device=each.device) if is_zero else each
                self.static[node, number] = zeros

    def _known(self, node: Node) -> Any:
        return self.numbers[node] if node in self.numbers else self.static[key_of(node)]

    def _is_number(self, key: Key) -> bool:
        """Whether kernels have a tensor as a number: one known element, which may be on the CPU."""
        return key in self.static and key[0].op != "placeholder" and self.static[key].numel() == 1

    def _lower(self, node: Node, sources: Sequence[Key]) -> None:
        """Make a call an operation of a region, or a view. Raises UsageError if no kernel can be made of it."""
        name = str(node.target)
        rule = RULES.get(name)
        if rule is None:
            raise UnsupportedCall(f"{name}: no kernel is known for this operator")
        for key in sources:
            if not self._is_number(key):
                check_tensor(tensor_of(key), self.device)
        call = call_of(node)
        if getattr(node.target, "is_view", False) and len(sources) == 1:
            self._view(node, sources[0])
            return
        level = self._level(sources)
        region = self.regions.setdefault(level, Region(level))
        seen: list[Seen] = []
        template = self._template(node, rule, call, region, seen)
        orders: list[tuple[int, ...]] = []
        for number in call.read:
            example = tensor_of((node, number))
            order = memory_order(example.shape, example.stride())
            if order is None:
                raise UnsupportedCall(f"{name}: the elements of its result are not side by side")
            orders.append(order)
        lower = lowering(rule, call, template, tuple(seen), orders)
        made = region.builder.apply(name.split(".")[1], lower, [each.operand for each in seen], [node.name])
        if self.device.type != "cpu" and any(operation.indices for operation in region.builder.operations[-1:]):
            region.builder.operations.pop()
            raise UnsupportedCall(f"{name}: kernels on a GPU would wait for its indices, to check them")
        for number, operand, order in zip(call.read, made, orders, strict=True):
            region.seen[node, number] = Seen(operand, transposition(np.argsort(order).tolist()))
        region.calls.append(node)
        self.levels[node] = level
        self.lowered.add(node)

    def _level(self, sources: Sequence[Key]) -> int:
        """The region of an operation: after the calls of PyTorch among its sources."""
        level = self.last_write + 1
        for source in sources:
            base = self.base(source)[0]
            if source not in self.static and base in self.levels:
                level = max(level, self.levels[base] + (base not in self.lowered))
        return level

    def _is_part(self, key: Key) -> bool:
        """Whether a tensor is a view of some elements of another one, or of elements in another order."""
        view, whole = tensor_of(key), tensor_of(self.base(key))
        is_whole = prod(view.shape) == prod(whole.shape) and _is_contiguous(view) and _is_contiguous(whole)
        return key[0] in self.views and key not in self.static and not is_whole

    def _view(self, node: Node, source: Key) -> None:
        """Record a view, if there is a handle of it."""
        example = tensor_of(source)
        handle = build.input("x", handle_type(example.dtype), example.shape)
        for number in call_of(node).read:
            view_step(node, number)(handle)
        self.views[node] = source

    def _template(self, node: Node, rule: Rule, call: Call, region: Region, seen: list[Seen]) -> tuple[Any, Any]:
        """The arguments of a call with slots in the place of tensors, whose views are appended to `seen`."""
        unread = unread_operands(node)

        def slot(argument: Node) -> Any:
            if argument in self.numbers:
                return self.numbers[argument]
            if argument in unread:
                return None
            if call.operator in PRODUCTS and (found := self._expansion(argument)) is not None:
                first = len(seen)
                seen.extend(self._seen(key, region) for key in found.sources)
                return Expanded(found.apply, tuple(map(Slot, range(first, len(seen)))))
            seen.append(self._seen(key_of(argument), region))
            return Slot(len(seen) - 1)

        def value(argument: Node) -> Any:
            key = key_of(argument)
            if argument in self.numbers:
                return self.numbers[argument]
            if key in self.static:
                return self.static[key].cpu()
            call.refuse(f"it needs the values of {argument.name} before the model runs")

        def either(argument: Node) -> Any:
            key = key_of(argument)
            if self._is_part(key):
                region.seen[key] = self._seen_part(key, region)
            return value(argument) if key in self.static else slot(argument)

        places = {**dict.fromkeys(rule.static, value), **dict.fromkeys(rule.known, either)}
        arguments = [
            torch.fx.node.map_arg(argument, places.get(position, slot)) for position, argument in enumerate(node.args)
        ]
        return arguments, torch.fx.node.map_arg(node.kwargs, slot)

    def _expansion(self, node: Node) -> Expansion | None:
        """A known operand of a product as a function of narrower tensors; None if it is no such one."""
        if key_of(node) not in self.static or self.device.type != "cpu":
            return None
        found = expansion(node, self.static, self.numbers)
        if found is not None:
            self.expanded |= found.calls
        return found

    def _forget_expanded(self) -> None:
        """Drop the values of calls that only kernels compute."""
        for node in self.expanded:
            readers = [user for user in node.users if user not in self.expanded]
            if all(user in self.lowered and str(user.target) in PRODUCTS for user in readers):
                del self.static[node, 0]

    def _seen(self, key: Key, region: Region) -> Seen:
        """A tensor as the operations of a region see it."""
        if key in self.static and (self._is_number(key) or self.device.type == "cpu"):
            return _seen_known(self.static[key].cpu(), is_given=key[0].op == "placeholder")
        if key in self.static and key[0].op != "placeholder" and _is_uniform(self.static[key]):
            return Seen(values_of(self.static[key].flatten()[0].cpu().expand(self.static[key].shape)))
        if key[0] in self.generated:
            made = self.generated[key[0]]
            return Seen(np.zeros((), numpy_type(made.dtype)), (lambda _: made,))
        if key not in region.seen:
            region.seen[key] = self._seen_view(key, region) if key[0] in self.views else _seen_input(key, region)
        return region.seen[key]

    def _seen_view(self, key: Key, region: Region) -> Seen:
        """A view as the operations of a region see it; one that moves no element is an array of its own."""
        node, number = key
        before = self._seen(self.views[node], region)
        result = tensor_of(key)
        seen = Seen(before.operand, (*before.steps, view_step(node, number)))
        operand, shape = seen.operand, tuple(result.shape)
        if isinstance(operand, Tensor) and prod(shape) == prod(operand.shape) and _is_reshaped(seen, operand, shape):
            (whole,) = region.builder.apply(
                "view",
                lambda given, _: Lowered((build.reshape(_array(given[0]), shape),)),
                [operand],
                [node.name],
            )
            return Seen(whole)
        return seen

    def _seen_part(self, key: Key, region: Region) -> Seen:
        """A part of a tensor as an array of its own, since calls check all elements of an array of indices."""
        if key in region.inputs or key in region.parts:
            return region.seen[key]
        if self.base(key)[0] not in region.calls:
            return _seen_input(key, region)
        seen, order = self._seen(key, region), _order_of(tensor_of(key))
        (part,) = region.builder.apply(
            "part",
            lambda given, _: Lowered((build.transpose(seen.of(_array(given[0])), order),)),
            [seen.operand],
            [key[0].name],
        )
        region.parts.append(key)
        return Seen(part, transposition(np.argsort(order).tolist()))

    def _exported(self, outputs: Sequence[Any]) -> dict[int, list[Key]]:
        """The results of regions that PyTorch, other regions or the caller read."""
        used: dict[Key, None] = {}
        for region in self.regions.values():
            used.update((self.base(key), None) for key in region.inputs)
        read = [each for nodes in self.calls.values() for node in nodes for each in node.all_input_nodes]
        read += [each for each in outputs if isinstance(each, Node)]
        while read:
            base = self.base(key_of(read.pop(0)))
            used[base] = None
            read += base[0].all_input_nodes if base[0] in self.generated else []
        found: dict[int, list[Key]] = {}
        for key in used:
            if key[0] in self.lowered:
                found.setdefault(self.levels[key[0]], []).append(key)
        return found


def _order_of(tensor: Example) -> tuple[int, ...]:
    """The axes in the order in which regions have the elements of a tensor."""
    return memory_order(tensor.shape, tensor.stride()) or tuple(range(tensor.dim()))


def _is_contiguous(tensor: Example) -> bool:
    return memory_order(tensor.shape, tensor.stride()) == tuple(range(tensor.dim()))


def _is_reshaped(seen: Seen, operand: Tensor, shape: Sequence[int]) -> bool:
    """Whether a view has all elements in their order."""
    handle = build.input("x", operand.dtype, operand.shape)
    try:
        return build.reshape(handle, shape).operand == seen.of(handle).operand
    except OpenExtent:
        return False


def _seen_known(tensor: torch.Tensor, *, is_given: bool) -> Seen:
    """A tensor whose values are known; one number for all elements takes no memory."""
    check_tensor(tensor)
    if not is_given and tensor.numel() > 1 and _is_uniform(tensor):
        tensor = tensor.flatten()[0].expand(tensor.shape)
        return Seen(values_of(tensor))
    order = memory_order(tensor.shape, tensor.stride())
    if order is None:
        return Seen(values_of(tensor.contiguous()))
    return Seen(values_of(tensor.permute(order)), transposition(np.argsort(order).tolist()))


def _is_uniform(tensor: torch.Tensor) -> bool:
    """Whether all elements are one number; 0 and -0 are two."""
    first = tensor.flatten()[0]
    return bool((tensor == first).all()) and bool((tensor.signbit() == first.signbit()).all())


def _seen_input(key: Key, region: Region) -> Seen:
    """A tensor that a region gets, in the order of memory."""
    example = tensor_of(key)
    as_it_is = strided_order(example)
    order = as_it_is or _order_of(example)
    operand = region.builder.input(
        f"x{len(region.inputs)}",
        handle_type(example.dtype),
        [example.shape[d] for d in order],
        [example.stride()[d] for d in (as_it_is or ())[:-1]],
    )
    region.inputs.append(key)
    return Seen(operand, transposition(np.argsort(order).tolist()))


def _array(value: Value | None) -> Array:
    assert isinstance(value, Array)
    return value
