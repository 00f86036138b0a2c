"""The wall around the model, seen from inside a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

from distro_model.rules.rule import RULES

HEAVY = ("grpc", "google.protobuf", "pyspark", "pyarrow", "hypothesis", "asyncio")


def test_importing_the_model_pulls_in_nothing_heavy():
    script = f"import sys, distro_model; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_check_above_can_fail():
    script = f"import sys, asyncio; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['asyncio']"


def test_every_rule_has_a_sentence_and_names_its_source():
    assert [name for name, rule in RULES.items() if not (rule.source and rule.sentence)] == []
