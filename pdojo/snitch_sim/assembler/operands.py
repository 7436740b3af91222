"""Operands of an instruction: conversion from text to numbers, and range checks."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

from pdojo.snitch_sim.assembler.expression import Symbols, evaluate, number
from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.assembler.registers import CSR, FLOAT, INTEGER, ROUNDING
from pdojo.snitch_sim.assembler.source import Statement
from pdojo.snitch_sim.assembler.table import ENCODINGS

_OFFSET = re.compile(r"(.*)\(\s*([\w.]+)\s*\)", re.DOTALL)

_LIMITS = {
    "j": (-2048, 2047, "immediate"),
    "o": (-2048, 2047, "offset"),
    "q": (-2048, 2047, "offset"),
    "u": (-(1 << 19), (1 << 20) - 1, "upper immediate"),
    ">": (0, 31, "shift"),
    "E": (0, 4095, "control register"),
    "Z": (0, 31, "immediate"),
    "5": (0, 31, "immediate"),
    "Y": (-2048, 4095, "stream register"),
    "N": (1, 4096, "number of instructions"),
    "X": (0, 7, "period of staggering"),
    "K": (0, 15, "mask of staggering"),
    "p": (-4096, 4094, "distance of the branch"),
    "a": (-(1 << 20), (1 << 20) - 2, "distance of the jump"),
}
_FIELDS = {
    **{"d": "rd", "D": "rd", "s": "rs1", "S": "rs1", "t": "rs2", "T": "rs2", "R": "rs3", "Z": "rs1", "5": "rs2"},
    **{"m": "rm", "X": "stagger_max", "K": "stagger_mask"},
}


def instruction(
    statement: Statement, name: str, operands: tuple[str, ...], address: int, symbols: Symbols
) -> Instruction:
    """The instruction of a statement. Raises AssemblyError."""
    encoding = ENCODINGS.get(name)
    if encoding is None:
        close = get_close_matches(name, ENCODINGS, 1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise statement.error(f"unknown instruction '{name}'{hint}")
    letters = encoding.operands.split(",") if encoding.operands else []
    given = list(operands)
    values: dict[str, Any] = {}
    if letters and letters[-1] == "m" and len(given) == len(letters) - 1:
        values["rm"] = encoding.rounding
        letters.pop()
    if name == "fence":
        given = []
    if len(given) != len(letters):
        raise statement.error(f"'{name}' takes {len(letters)} operands, not {len(given)}")
    for letter, text in zip(letters, given, strict=True):
        values.update(_operand(statement, letter, text, address, symbols))
    return Instruction(name, line=statement.line, text=statement.text, **values)


def _operand(statement: Statement, letter: str, text: str, address: int, symbols: Symbols) -> dict[str, int]:
    if letter in "dst":
        return {_FIELDS[letter]: _register(statement, text, INTEGER, "integer")}
    if letter in "DSTR":
        return {_FIELDS[letter]: _register(statement, text, FLOAT, "floating-point")}
    if letter == "m":
        if text not in ROUNDING:
            raise statement.error(f"'{text}' is no rounding mode; known: {', '.join(ROUNDING)}")
        return {"rm": ROUNDING[text]}
    if letter == "E" and text in CSR:
        return {"imm": CSR[text]}
    if letter in "oq":
        match = _OFFSET.fullmatch(text)
        if match is None:
            raise statement.error(f"'{text}' is no offset(register)")
        base = _register(statement, match.group(2), INTEGER, "integer")
        offset = match.group(1).strip() or "0"
        return {"rs1": base, "imm": _value(statement, letter, offset, symbols)}
    if letter in "pa":
        plain = number(text)
        distance = plain if plain is not None else evaluate(text, symbols, statement.error) - address
        if distance % 4:
            raise statement.error(f"the target is {distance} bytes away, which is no multiple of 4")
        return {"imm": _within(statement, letter, distance)}
    return {_FIELDS.get(letter, "imm"): _value(statement, letter, text, symbols)}


def _register(statement: Statement, text: str, known: dict[str, int], kind: str) -> int:
    if text not in known:
        raise statement.error(f"'{text}' is no {kind} register")
    return known[text]


def _value(statement: Statement, letter: str, text: str, symbols: Symbols) -> int:
    return _within(statement, letter, evaluate(text, symbols, statement.error))


def _within(statement: Statement, letter: str, value: int) -> int:
    low, high, what = _LIMITS[letter]
    if not low <= value <= high:
        raise statement.error(f"{what} {value} is not between {low} and {high}")
    return value & 0xFFF if letter == "Y" else value
