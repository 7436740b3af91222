"""The imports for writing a move: program and analysis, operations and expressions, the base class."""

# pyright: reportUnusedImport=false

from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntegerAttr, MemRefType, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from pdojo.dialect.affine import Expr, atom_variables, const, floordiv, modulo, var
from pdojo.dialect.attributes import Intent, Mapping, MappingAttr, Memory, MemoryAttr, Numerics
from pdojo.dialect.canonical import owner_of, shorter_extent
from pdojo.dialect.flow.collision import AFTER, ANY, BEFORE, EQUAL, Domain, Order, Query, Relation, Witness
from pdojo.dialect.flow.coverage import common_depth, fills_box
from pdojo.dialect.flow.excluded import harm, lacking
from pdojo.dialect.flow.flows import uninitialised
from pdojo.dialect.flow.integer_sets import Reach, bounds_over_domain, unreached
from pdojo.dialect.flow.inversion import Equation, solve
from pdojo.dialect.flow.origins import any_of, element_uses, instances_of, number_of
from pdojo.dialect.flow.program import Conflict, Program
from pdojo.dialect.flow.shortcut import Answer, answered, is_used
from pdojo.dialect.flow.storage_check import StorageQuestion
from pdojo.dialect.flow.uses import Use, describe_use, remapped_chain, uses_of
from pdojo.dialect.flow.webs import web_of, webs_of
from pdojo.dialect.functions import ACCUMULATIONS, DTYPES, accumulates, byte_width, identity_value, is_float
from pdojo.dialect.hints import AHEAD, LANE, LAUNCH_BOUNDS, NONTEMPORAL, ORDINARY, PREFETCH, READONLY, STREAMING
from pdojo.dialect.lookups import lookups_in
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.pattern import pattern_of, same_form
from pdojo.dialect.notation.fragments import declared, fragment_text, parse_fragment, sentence, statement_of
from pdojo.dialect.notation.index import parse_constant, parse_guard, parse_index
from pdojo.dialect.notation.literals import format_constant
from pdojo.dialect.notation.printer import declaration_line, guard_texts
from pdojo.dialect.ops import BufferOp, KernelOp, ScopeOp, StatementOp, Swizzle, hints_attr, reuse_attr, swizzle_attr
from pdojo.dialect.reason import Reason
from pdojo.dialect.rewriting import (
    build_op,
    chain_ops,
    fresh_id,
    move_into,
    place_guards,
    rebuilt,
    reindex,
    replace_variable,
    set_guard,
    set_id,
    simplified,
    substitute_input,
)
from pdojo.dialect.rules import hints as hint_rules
from pdojo.dialect.rules.async_copies import async_copy_problem
from pdojo.dialect.rules.atomics import atomics_needed, atomics_problem
from pdojo.dialect.rules.capacity import LIMITED, MOST_STATEMENTS, UNKNOWN, is_full, overflow, unrolled
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.rules.frames import frame_problem
from pdojo.dialect.rules.hardware_loops import has_extremum, loop_limits
from pdojo.dialect.rules.hints import streaming_misfit, value_of
from pdojo.dialect.rules.lanes import (
    Stride,
    base_alignment,
    bytes_in_memory,
    lane_problem,
    physical_bytes,
    register_problem,
    stride_over,
    vector_problem,
)
from pdojo.dialect.rules.races import Race, concurrent_around, find_race, racing_scope
from pdojo.dialect.rules.special_mappings import is_special, parallel_problem
from pdojo.dialect.rules.streams import region_limits, streams_of
from pdojo.dialect.rules.tensor import available, match
from pdojo.dialect.syntax import names_of
from pdojo.dialect.verification.mappings import misplaced_mapping
from pdojo.dialect.verification.statements import (
    async_problem,
    bounds_within,
    folded_lanes,
    index_bounds,
    swizzled_lanes,
)
from pdojo.dialect.verification.structure import constancy_problem, swizzle_problem
from pdojo.dialect.view.binding import binding_nests, binding_problem, constants_of, dependence
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.grids import is_in_grid
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import (
    Access,
    Array,
    Buffer,
    Constant,
    Index,
    Input,
    Leaf,
    Nest,
    Node,
    Scope,
    fact,
    leaves_of,
)
from pdojo.dialect.view.nodes import bound_of, is_whole, named_around, nodes_of, run_time_extent
from pdojo.dialect.view.storage import accesses_of, open_strides, physical_index, private_scope, slot_index
from pdojo.errors import NotationError, Undecided
from pdojo.transforms.base import EFFECT, Transformation
from pdojo.transforms.legality.faults import fault
from pdojo.transforms.legality.trials import foresee, rehearse
from pdojo.transforms.move import Move
from pdojo.transforms.promises import Promises
from pdojo.transforms.site import Dimension, Site, locate
