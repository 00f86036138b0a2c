"""Reading `application.properties`: Java's syntax, and Spring's `${NAME:default}` placeholders.

The syntax (comments, continued lines, `\\uXXXX`, `=` or `:` or blanks between key and value) is javaproperties' work. A
name in a placeholder is looked up in the environment, then among the keys of the file, then in its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import javaproperties

from distro_impl.settings.errors import SettingError


def read_properties(path: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Key to value, placeholders filled in. Raises SettingError, or OSError naming the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SettingError(f"{path} is not UTF-8 ({error.reason} at byte {error.start}); write it as \\uXXXX") from None
    raw = _pairs(text, path)
    return {key: _Placeholders(environment, raw, f"{path}: the value of '{key}'").filled(raw[key]) for key in raw}


def _pairs(text: str, path: Path) -> dict[str, str]:
    pairs: dict[str, str] = {}
    try:
        for entry in javaproperties.parse(StringIO(text)):
            if not isinstance(entry, javaproperties.KeyValue):
                continue
            if pairs.get(entry.key, entry.value) != entry.value:
                raise SettingError(f"{path} gives '{entry.key}' twice, with different values; keep one")
            pairs[entry.key] = entry.value
    except javaproperties.InvalidUEscapeError as error:
        raise SettingError(f"{path}: {error.escape!r} is no \\uXXXX escape") from None
    return {key: value.strip() for key, value in pairs.items()}


class _Placeholders:
    """Fills in the placeholders of one value; `where` names it in error messages."""

    def __init__(self, environment: Mapping[str, str], pairs: Mapping[str, str], where: str) -> None:
        self._environment, self._pairs, self._where = environment, pairs, where
        self._open: list[str] = []

    def filled(self, text: str) -> str:
        start = text.find("${")
        if start < 0:
            return text
        end = self._end_of(text, start)
        name, colon, default = text[start + 2 : end].partition(":")
        value = self._value_of(name, default if colon else None)
        return text[:start] + value + self.filled(text[end + 1 :])

    def _end_of(self, text: str, start: int) -> int:
        """The brace that closes the one at `start`; defaults may hold placeholders of their own."""
        depth = 0
        for position in range(start, len(text)):
            if text.startswith("${", position):
                depth += 1
            elif text[position] == "}":
                depth -= 1
                if depth == 0:
                    return position
        raise SettingError(f"{self._where} opens a placeholder and does not close it: '{text[start:]}'")

    def _value_of(self, name: str, default: str | None) -> str:
        if name in self._environment:
            return self._environment[name]
        found = self._pairs.get(name, default)
        if found is None:
            raise SettingError(f"{self._where} needs ${{{name}}}, which is neither set nor has a default")
        if name in self._open:
            raise SettingError(f"{self._where} refers to itself: {' -> '.join([*self._open, name])}")
        self._open.append(name)
        try:
            return self.filled(found)
        finally:
            self._open.pop()
