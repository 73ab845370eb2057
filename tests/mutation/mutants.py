"""Mutants: the edits that can be made to one module, each a small defect that no person designed.

An edit changes one expression or one statement of a function: a comparison and its boundary, a condition negated, an
operator, two arguments swapped, a constant, a statement deleted. Asserts, annotations, docstrings and the text of
messages are left as they are: the checkers judge what a broker does, not what it prints.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

REACHED = "__statement_reached__"
"""The global by which an instrumented module reports the statements that it executes."""

_ROOT = Path(__file__).parents[2]
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}  # fmt: skip
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_DELETED = (ast.AugAssign, ast.Delete, ast.Break, ast.Continue, ast.Raise)


class Mutant(NamedTuple):
    """One edit of one module.

    Attributes:
        module: its path below the root, with slashes.
        number: which of the module's edits; it changes with the module.
        line: of the mutated code. ``statement``: the line on which the statement around it begins, which control
            flow has to reach for the mutant to differ from the original; 0: code that runs when the module is imported.
        function: the qualified name of the function; empty at the module's level.
        operator: the kind of edit. ``before`` and ``after``: the code, in one line.
        nth: which one it is, from 0, of those of its function that read the same.
    """

    module: str
    number: int
    line: int
    statement: int
    function: str
    operator: str
    before: str
    after: str
    nth: int = 0

    @property
    def name(self) -> str:
        """What identifies it as long as its function is not changed."""
        nth = f" (number {self.nth + 1})" if self.nth else ""
        return f"{self.module}:{self.function}: {self.operator}: {self.before} -> {self.after}{nth}"


class _Edit(NamedTuple):
    node: ast.AST
    operator: str
    after: ast.AST | None
    do: Callable[[], None]


class _Place(NamedTuple):
    """A statement: the list that it is in, the function or class around it, and whether it runs when that is called."""

    body: list[ast.stmt]
    statement: ast.stmt
    function: tuple[str, ...]
    is_called: bool


@cache
def mutants_of(module: str) -> Sequence[Mutant]:
    """Every mutant of the module at a path below the root."""
    tree = ast.parse((_ROOT / module).read_text())
    seen: Counter[str] = Counter()
    found = []
    for number, (place, edit) in enumerate(_edits(tree)):
        mutant = _described(module, number, place, edit)
        found.append(mutant._replace(nth=seen[mutant.name]))
        seen[mutant.name] += 1
    return found


def _described(module: str, number: int, place: _Place, edit: _Edit) -> Mutant:
    statement = place.statement.lineno
    return Mutant(
        module,
        number,
        getattr(edit.node, "lineno", statement),
        statement if place.is_called else 0,
        ".".join(place.function),
        edit.operator,
        _one_line(edit.node),
        "" if edit.after is None else _one_line(edit.after),
    )


def statements_of(module: str) -> CodeType:
    """The module's code, which calls :data:`REACHED` with the line of each statement of a function before it."""
    tree = ast.parse((_ROOT / module).read_text())
    places = [place for place in _statements(tree.body, ()) if place.is_called]
    for place in places:
        call = ast.Call(_name(REACHED), [ast.Constant(place.statement.lineno)], [])
        at = next(at for at, one in enumerate(place.body) if one is place.statement)
        place.body.insert(at, ast.copy_location(ast.Expr(call), place.statement))
    return compile(ast.fix_missing_locations(tree), str(_ROOT / module), "exec", optimize=1)


def compiled(mutant: Mutant) -> CodeType:
    """The code of the mutant's module.

    Raises:
        LookupError: the module has no such edit.
    """
    tree = ast.parse((_ROOT / mutant.module).read_text())
    for number, (_, edit) in enumerate(_edits(tree)):
        if number == mutant.number:
            edit.do()
            return compile(ast.fix_missing_locations(tree), str(_ROOT / mutant.module), "exec", optimize=1)
    raise LookupError(f"{mutant.name} is not in the module any more")


def sample(modules: Sequence[str], size: int, seed: int) -> list[Mutant]:
    """``size`` mutants drawn from all of the modules', each as likely as any other; in the order of the modules."""
    everything = [mutant for module in modules for mutant in mutants_of(module)]
    return _drawn(everything, size, seed)


def sample_again(modules: Sequence[str], size: int, seed: int, before: Collection[str]) -> list[Mutant]:
    """A sample of ``size`` mutants, of which ``before`` has the names as they were when it was drawn.

    A draw depends on how many mutants there are, so that each change of the code would draw others. Those that are
    still there stay, and others are drawn in place of the rest.
    """
    everything = [mutant for module in modules for mutant in mutants_of(module)]
    stay = _drawn([mutant for mutant in everything if mutant.name in before], size, seed)
    others = [mutant for mutant in everything if mutant.name not in before]
    chosen = {mutant.name for mutant in (*stay, *_drawn(others, size - len(stay), seed))}
    return [mutant for mutant in everything if mutant.name in chosen]


def _drawn(mutants: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    drawn = random.Random(seed).sample(range(len(mutants)), min(size, len(mutants)))
    return [mutants[at] for at in sorted(drawn)]


# ----------------------------------------------------------------------------------------------------------- finding


def _edits(tree: ast.Module) -> Iterator[tuple[_Place, _Edit]]:
    for place in _statements(tree.body, ()):
        deleted = _deletion(place)
        if deleted is not None:
            yield place, deleted
        for node in _own_nodes(place.statement):
            for edit in _edits_of(node):
                yield place, edit


def _statements(body: list[ast.stmt], function: tuple[str, ...], *, is_called: bool = False) -> Iterator[_Place]:
    for statement in body:
        if _is_left_alone(statement):
            continue
        inner, is_called_there = function, is_called
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = (*function, statement.name)
            is_called_there = is_called or not isinstance(statement, ast.ClassDef)
        else:
            yield _Place(body, statement, function, is_called)
        for block in _blocks(statement):
            yield from _statements(block, inner, is_called=is_called_there)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield from [block] if (block := getattr(statement, name, None)) else []
    for name in ("handlers", "cases"):
        yield from (one.body for one in getattr(statement, name, ()))


def _is_left_alone(statement: ast.stmt) -> bool:
    """Asserts, imports, declarations without a value, docstrings, code for type checkers, and the designed bugs."""
    if isinstance(statement, ast.If) and _asks_for_bugs(statement.test):
        return True
    match statement:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant()) | ast.AnnAssign(value=None):
            return True
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            return True
    return False


def _asks_for_bugs(node: ast.AST) -> bool:
    """Whether an expression looks at the knob that switches the designed bugs on."""
    return any(isinstance(one, ast.Attribute) and one.attr == "bugs" for one in ast.walk(node))


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of the statements in it; a case's guard belongs to its match."""
    for name, value in ast.iter_fields(statement):
        if name in {"annotation", "body", "orelse", "finalbody", "handlers"}:
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.match_case):
                yield from ast.walk(one.guard) if one.guard is not None else ()
            elif isinstance(one, ast.AST) and not isinstance(one, ast.stmt):
                yield from _walk(one)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs; the text of messages and the switches of designed bugs are left out."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Compare) and _asks_for_bugs(node)):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


# ------------------------------------------------------------------------------------------------------------- edits


def _edits_of(node: ast.AST) -> Iterator[_Edit]:
    match node:
        case ast.Compare():
            yield from _comparisons(node)
        case ast.BoolOp(op):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield _set(node, "boolean operator", op=other)
        case ast.UnaryOp(ast.Not(), operand):
            yield _set(node, "negation dropped", op=ast.UAdd(), operand=ast.Call(_name("bool"), [operand], []))
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC and not _is_of_types(node):
            yield _set(node, "arithmetic operator", op=_ARITHMETIC[type(op)]())
        case ast.Constant(bool(value)):
            yield _set(node, "constant", value=not value)
        case ast.Constant(int(value)):
            yield _set(node, "constant", value=value + 1)
            yield _set(node, "constant", value=value - 1)
        case ast.Call():
            yield from _calls(node)
        case ast.IfExp(test) if not _asks_for_bugs(test):
            yield _set(node, "condition negated", test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[_, *_] as conditions):
            yield _set(node, "filter dropped", ifs=conditions[1:])


def _is_of_types(node: ast.BinOp) -> bool:
    """Whether it is a union of types, ``Append | Truncate``."""
    names = [one.id for one in (node.left, node.right) if isinstance(one, ast.Name)]
    return isinstance(node.op, ast.BitOr) and any(name[:1].isupper() and not name.isupper() for name in names)


def _comparisons(node: ast.Compare) -> Iterator[_Edit]:
    for at, op in enumerate(node.ops):
        for other in _COMPARISONS[type(op)]:
            yield _set(node, "comparison", ops=[*node.ops[:at], other(), *node.ops[at + 1 :]])


def _calls(node: ast.Call) -> Iterator[_Edit]:
    match node:
        case ast.Call(ast.Name(id=name)) if name in _OPPOSITES:
            yield _set(node, "function", func=_name(_OPPOSITES[name]))
        case ast.Call(args=[first, second, *others]) if not _may_swap_freely(node, first, second):
            yield _set(node, "arguments swapped", args=[second, first, *others])


def _may_swap_freely(node: ast.Call, first: ast.expr, second: ast.expr) -> bool:
    """Whether the order of two arguments means nothing, or is one of a type and a value."""
    if any(isinstance(one, ast.Starred) for one in (first, second)) or ast.dump(first) == ast.dump(second):
        return True
    return isinstance(node.func, ast.Name) and node.func.id in {"min", "max", "isinstance", "cast"}


def _deletion(place: _Place) -> _Edit | None:
    """A statement that can be left out without a name being missing afterwards."""
    statement = place.statement
    match statement:
        case ast.Expr(ast.Call() | ast.YieldFrom() | ast.Yield()) | ast.Assign(targets=[ast.Attribute()]):
            pass
        case ast.Assign(targets=[ast.Subscript()]) | ast.If(orelse=[]):
            pass
        case ast.Return() if len(place.body) == 1:
            pass  # an early return
        case _ if isinstance(statement, _DELETED):
            pass
        case _:
            return None
    is_first = isinstance(statement, ast.Assign) and place.function[-1:] == ("__init__",)
    if not place.function or is_first:
        return None

    def do() -> None:
        at = next(at for at, one in enumerate(place.body) if one is statement)
        place.body[at] = ast.copy_location(ast.Pass(), statement)

    return _Edit(statement, "statement deleted", None, do)


def _set(node: Any, operator: str, **fields: Any) -> _Edit:
    """An edit that sets fields of a node."""
    changed = type(node)(**{**dict(ast.iter_fields(node)), **fields})

    def do() -> None:
        for name, value in fields.items():
            setattr(node, name, value)

    return _Edit(node, operator, ast.copy_location(changed, node), do)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _one_line(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node))
    first, *others = text.splitlines()
    return first + (f" [{len(others)} more]" if others else "")
