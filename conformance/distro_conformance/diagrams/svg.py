"""A sequence diagram as SVG: text and lines, no script, readable in both themes and on paper.

The colours are custom properties of the surrounding page, with fallbacks. Each arrow also shows by its form and in
words how its message ended, for readers who do not see colours and for prints without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from textwrap import wrap

from distro_conformance.diagrams.sequence import Delivery, Fault, Item, Message, Note, Sequence

COLUMN, MARGIN, HEAD, ROW, REPLY, LINE = 190, 133, 44, 34, 15, 14
WIDEST, ALL_WIDEST = 320, 850
"""Between two lifelines, and between the first and the last where they have room: beyond that a label is cut."""
LETTER = 6.7
"""Width of a letter of the labels, which are 11 px and of one width each."""

_STYLE = """
.sequence{font:11px ui-monospace,SFMono-Regular,Menlo,monospace}
.sequence text{fill:var(--ink,#1b1f24)}
.sequence .life{stroke:var(--line,#9aa4b0);stroke-dasharray:2 4}
.sequence .head{fill:var(--panel,#eef1f4);stroke:var(--line,#9aa4b0)}
.sequence .arrow{stroke:var(--ink,#1b1f24);fill:none}
.sequence .tip{fill:var(--ink,#1b1f24)}
.sequence .lost,.sequence .swallowed,.sequence .failed{stroke:var(--warn,#9a5b00)}
.sequence .lost,.sequence .swallowed{stroke-dasharray:5 4}
.sequence text.lost,.sequence text.swallowed,.sequence text.failed{fill:var(--warn,#9a5b00);stroke:none}
.sequence .reply{fill:var(--soft,#57606a)}
.sequence .fault{fill:var(--warn-panel,#fff3dc)}
.sequence .bad rect{fill:var(--bad-panel,#ffe3e0);stroke:var(--bad,#b3261e)}
.sequence .bad text{fill:var(--bad,#b3261e);font-weight:700}
""".replace("\n", "")


def svg(sequence: Sequence, colours: str = "") -> str:
    """The picture as one element; its size grows with lifelines and items. `colours`: those of a page around it, in the
    words of CSS, where there is no page."""
    return _Drawing(sequence).element(colours + _STYLE)


@dataclass(frozen=True)
class _Drawing:
    sequence: Sequence

    @property
    def width(self) -> int:
        return 2 * MARGIN + self.column * max(0, len(self.sequence.lifelines) - 1)

    @cached_property
    def column(self) -> int:
        """The width of the longest label of a message, if the lifelines leave room for it."""
        widest = min(WIDEST, ALL_WIDEST // max(1, len(self.sequence.lifelines) - 1))
        texts = [text for each in self.sequence.items if isinstance(each, Message) for text in (each.text, each.reply)]
        return max(COLUMN, min(widest, int((max(map(len, texts), default=0) + 2) * LETTER)))

    def x(self, name: str) -> int:
        return MARGIN + self.column * self.sequence.lifelines.index(name)

    def element(self, style: str) -> str:
        rows, y = [], HEAD + ROW
        if self.sequence.before:
            rows.append(self._left_out(y, f"… {self.sequence.before} earlier"))
            y += ROW
        for item in self.sequence.items:
            rows.append(self._item(item, y))
            y += ROW + self._more(item)
        if self.sequence.after:
            rows.append(self._left_out(y, f"… {self.sequence.after} later"))
            y += ROW
        height = y + ROW // 2
        title = escape(self.sequence.title)
        return (
            f'<svg class="sequence" role="img" aria-label="{title}" viewBox="0 0 {self.width} {height}" '
            f'width="{self.width}" height="{height}" xmlns="http://www.w3.org/2000/svg"><title>{title}</title>'
            f"<style>{style}</style>{self._lifelines(height)}{''.join(rows)}</svg>"
        )

    def _more(self, item: Item) -> int:
        """The height that the item needs in addition to a row."""
        match item:
            case Message():
                return REPLY if item.reply else 0
            case Note(at, text):
                return LINE * (len(_wrapped(text, self._room(at))) - 1)
            case Fault(text):
                return LINE * (len(_wrapped(text, self.width)) - 1)

    def _room(self, at: str) -> int:
        return 2 * min(MARGIN, self.x(at), self.width - self.x(at))

    def _lifelines(self, height: int) -> str:
        drawn = []
        for name in self.sequence.lifelines:
            x, half = self.x(name), max(24, int(len(name) * LETTER / 2) + 8)
            drawn.append(
                f'<line class="life" x1="{x}" y1="{HEAD - 10}" x2="{x}" y2="{height - 6}"/>'
                f'<rect class="head" x="{x - half}" y="8" width="{2 * half}" height="24" rx="5"/>'
                f'<text x="{x}" y="24" text-anchor="middle">{escape(name)}</text>'
            )
        return "".join(drawn)

    def _item(self, item: Item, y: int) -> str:
        match item:
            case Message():
                drawn = self._message(item, y)
            case Note(at, text):
                drawn = self._box(self.x(at), self._room(at), y, text, "head")
            case Fault(text):
                drawn = self._box(self.width // 2, self.width, y, text, "fault", fills=True)
        return f'<g class="bad">{drawn}</g>' if item.bad else drawn

    def _message(self, message: Message, y: int) -> str:
        start, tip = self.x(message.source), self.x(message.target)
        way = 1 if tip > start else -1
        end = (start + tip) // 2 if message.delivery in (Delivery.LOST, Delivery.SWALLOWED) else tip
        middle, label = (start + tip) // 2, self._fitting(message.text, abs(tip - start))
        delivery = message.delivery.value
        head = (
            f'<polygon class="tip" points="{end},{y} {end - 8 * way},{y - 4} {end - 8 * way},{y + 4}"/>'
            if end == tip
            else f'<text class="{delivery}" x="{end}" y="{y + 4}" text-anchor="middle">✕</text>'
        )
        plain = "" if message.delivery is Delivery.ARRIVED else f" {delivery}"
        drawn = (
            f'<line class="arrow{plain}" x1="{start}" y1="{y}" x2="{end}" y2="{y}"/>{head}'
            f'<text class="{delivery}" x="{middle}" y="{y - 6}" text-anchor="middle">{label}</text>'
        )
        if message.reply:
            reply = self._fitting(message.reply, abs(tip - start))
            drawn += f'<text class="reply" x="{middle}" y="{y + 14}" text-anchor="middle">{reply}</text>'
        whole = f"{message.source} to {message.target}: {message.text} ({message.reply or delivery})"
        background = f'<rect x="{min(start, tip)}" y="{y - 18}" width="{abs(tip - start)}" height="{ROW}"/>'
        return f"<g><title>{escape(whole)}</title>{background if message.bad else ''}{drawn}</g>"

    @staticmethod
    def _box(x: int, room: int, y: int, text: str, style: str, *, fills: bool = False) -> str:
        """A text around `x`, on as many lines as it needs; the first line is at the height of the row."""
        lines = _wrapped(text, room)
        half = room // 2 if fills else min(int(max(map(len, lines)) * LETTER / 2) + 8, room // 2)
        rows = "".join(
            f'<tspan x="{x}" dy="{LINE if number else 0}">{escape(line)}</tspan>' for number, line in enumerate(lines)
        )
        height = 22 + LINE * (len(lines) - 1)
        return (
            f'<g><rect class="{style}" x="{x - half}" y="{y - 17}" width="{2 * half}" height="{height}" rx="3"/>'
            f'<text x="{x}" y="{y - 2}" text-anchor="middle">{rows}</text></g>'
        )

    def _left_out(self, y: int, text: str) -> str:
        return f'<text class="reply" x="{self.width // 2}" y="{y - 2}" text-anchor="middle">{text}</text>'

    @staticmethod
    def _fitting(text: str, width: int) -> str:
        """The text, cut to the room for it; the whole text is in the title, which a pointer and a screen reader
        show."""
        letters = max(4, int(width / LETTER) - 1)
        return escape(text if len(text) <= letters else f"{text[: letters - 1]}…")


def _wrapped(text: str, room: int) -> list[str]:
    return wrap(text, max(4, int((room - 16) / LETTER))) or [""]
