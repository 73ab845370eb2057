from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
DOCUMENT = (HERE.parents[2] / "docs" / "jepsen.md").read_text()
TRAPS = re.findall(r"^def (test_\w+)\(", (HERE / "test_traps.py").read_text(), re.MULTILINE)

PLAIN = {"test_a_clean_history_passes", "test_a_record_that_everybody_was_taken_past_is_lost"}
"""What both checkers say alike."""


def test_every_trap_in_the_document_has_a_test_and_every_test_a_trap() -> None:
    told = re.findall(r"^\| .* \| `(test_\w+)` \|$", DOCUMENT, re.MULTILINE)
    assert len(told) == len(set(told))
    assert set(told) | PLAIN == set(TRAPS)
