"""Each rule of each specification holds in each library; the docs show it in tables."""

import itertools
from functools import cache
from pathlib import Path

import pytest

import variants
from specifications import OPERATORS, RULES

DOCS = Path(__file__).parents[1] / "docs" / "specifications.md"
HEAD = f"""# The specifications, rule by rule

Each row is a check in `tests/specifications.py`, which runs in the test session of each library
({", ".join(variants.ALL)}).
It passes on every kind of the library's arrays, unless the last column names the library:

- *no such type*: the library has no type to which the rule applies.
- *not run*: no session has run the check yet. CuPy's session needs a CUDA device.

A test writes these tables, one library at a time
(`pytest --library NAME tests/test_specifications.py --write-docs`), and compares them with what
that library's session sees. Shape inference is compared with ONNX's own in `conformance/`,
because no published text has its rules.

A source is a published page, under a short name, and a section:

- `onnx-tile.txt`: [ONNX Tile](https://onnx.ai/onnx/operators/onnx__Tile.html);
  `onnx-tile-with-examples.rst` is an older version of that page, with the examples of
  [ONNX's tests](https://github.com/onnx/onnx/blob/main/onnx/backend/test/case/node/tile.py)
- `onnx-expand.txt`: [ONNX Expand](https://onnx.ai/onnx/operators/onnx__Expand.html)
- `openvino-tile-1.txt`: [OpenVINO Tile-1](https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html)
- `directml-tile-operator-desc.txt`:
  [DML_TILE_OPERATOR_DESC](https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_tile_operator_desc),
  and, for the sizes of its tensors,
  [DML_BUFFER_TENSOR_DESC](https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_buffer_tensor_desc)

"""


def name(rule):
    return f"{rule.operator}: {rule.text} ({rule.source})"


@cache
def answer(rule, variant):
    """Check a rule on a variant, once for both tests that need the answer."""
    return rule.holds(variant)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_the_rule_holds(xp, rule):
    assert answer(rule, xp)


def test_every_operator_has_rules_and_every_rule_its_own_name():
    assert {rule.operator for rule in RULES} == set(OPERATORS)
    assert len(set(map(name, RULES))) == len(RULES)


def seen(library):
    """Check each rule on every variant that runs here."""
    found = [variant for variant in variants.ALL[library] if not variant.missing()]
    return {name(rule): answer(rule, variant) for rule, variant in itertools.product(RULES, found)}


def tables(columns):
    """Write a table for each operator from each library's answers."""
    lines = []
    for operator in OPERATORS:
        lines += ["", f"## {operator}", "", "| rule | source | except |", "|---|---|---|"]
        for rule in RULES:
            if rule.operator == operator:
                exceptions = {}
                for library, column in columns.items():
                    found = column.get(name(rule), "not run")
                    exceptions.setdefault(found, []).append(library)
                exceptions.pop("holds", None)
                named = "; ".join(f"{why}: {', '.join(of)}" for why, of in exceptions.items())
                lines.append(f"| {rule.text} | {rule.source} | {named} |")
    return "\n".join(lines[1:]) + "\n"


def written():
    """Read each library's answers from the docs."""
    columns = {library: {} for library in variants.ALL}
    operator = ""
    for line in DOCS.read_text().splitlines():
        operator = line.removeprefix("## ") if line.startswith("## ") else operator
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0] not in ("rule", "---"):
            text, source, named = cells
            for column in columns.values():
                column[f"{operator}: {text} ({source})"] = "holds"
            for exception in filter(None, named.split("; ")):
                why, _, libraries = exception.partition(": ")
                for library in libraries.split(", "):
                    columns[library][f"{operator}: {text} ({source})"] = why
    return columns


def test_the_table_in_the_docs_is_what_was_seen(request):
    library = request.config.getoption("--library")
    columns, found = written(), seen(library)
    if library == "cupy" and not request.config.getoption("--write-docs"):
        # Who adds a rule may have no GPU to see it hold there.
        found |= {rule: cell for rule, cell in columns[library].items() if cell == "not run"}
    columns[library] = found
    if request.config.getoption("--write-docs"):
        DOCS.write_text(HEAD + tables(columns))
    assert DOCS.read_text() == HEAD + tables(columns)
