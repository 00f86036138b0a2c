"""What provokes a mutant: for each a scenario in which `strict` does no wrong and the mutant cannot do right.

Played by the simulation with the model's mutant, and by reference nodes with their own where they have one; each ends
with a checkpoint. Written after the triggers that the catalogue of bugs names, as short as they become.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_PUBLISHED = """
connect c1 a
register c1 web 10.0.0.1:80
advance 2s
"""
_SETTLED = """
advance 20s
checkpoint
"""

_SWALLOWED_CHANGE = f"""{_PUBLISHED}
swallow a->b CHANGE c1
register c1 web 10.0.0.2:80
{_SETTLED}"""

_STALE_SNAPSHOT = f"""
nodes a b
{_PUBLISHED}
crash b
hold b->a
advance 500ms
restart b
connect c2 b
register c2 web 10.0.0.2:80
advance 1200ms
deliver b->a CHANGE c2
register c2 web 10.0.0.3:80      # the snapshot that a gives now has what was before
deliver b->a SNAPSHOT
release b->a
{_SETTLED}"""

_CHANGES_BEFORE_EACH_VERIFY = "\n".join(f"register c1 web 10.0.0.1:{80 + n % 2}\nadvance 5s" for n in range(40))

PROVOKED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("B02", "m-add-after-fail-to-all", "no-anti-entropy"), _SWALLOWED_CHANGE),
        **dict.fromkeys(("B01", "B41"), _STALE_SNAPSHOT),
        "B03": f"""{_PUBLISHED}
silent c1
advance 60s
checkpoint
""",
        "B05": f"""{_PUBLISHED}
hold a->b
register c1 web 10.0.0.2:80
register c1 db 10.0.0.1:80
advance 1200ms
deregister c1 db
register c1 web 10.0.0.3:80
advance 1200ms
release a->b
{_SETTLED}""",
        "B05-sender": f"""{_PUBLISHED}
register c1 web 10.0.0.2:80
advance 1000ms
register c1 web 10.0.0.3:80
register c1 db 10.0.0.3:80
advance 2ms
register c1 web 10.0.0.4:80
advance 1ms
register c1 web 10.0.0.5:80
{_SETTLED}""",
        "B06": """
http register web 10.0.0.1:80 at a
advance 5s
http beat web 10.0.0.1:80 at a
advance 5s
http beat web 10.0.0.1:80 at b
advance 60s
checkpoint
""",
        "B07": """
connect c1 a
register c1 web 10.0.0.1:80
advance 8s
checkpoint
""",
        "B08": f"""{_PUBLISHED}
register c1 web 10.0.0.2:80
disconnect c1
advance 15s
checkpoint
""",
        "B10": f"""
connect c1 a
advance 2s
register c1 web 10.0.0.1:80
advance 2s
register c1 web 10.0.0.2:80
{_SETTLED}""",
        "B11": """
connect c1 a
register c1 web 10.0.0.1:80
connect c2 a
register c2 web 10.0.0.2:80
connect c3 c
register c3 web 10.0.0.3:80
advance 2s
crash b
advance 5s
restart b
advance 100s
checkpoint
""",
        "B18": """
connect c1 a
batch c1 web 10.0.0.1:80, 10.0.0.2:80
advance 2s
batch c1 web 10.0.0.1:80, 10.0.0.3:80
advance 9s
checkpoint
""",
        "B19": f"""{_PUBLISHED}
batch c1 web 10.0.0.1:80, 10.0.0.2:80
advance 15s
checkpoint
""",
        "B24": f"""{_PUBLISHED}
hold a->b
register c1 web 10.0.0.2:80
advance 3.5s
disconnect c1
advance 1s
release a->b
{_SETTLED}""",
        "B26": f"""{_PUBLISHED}
hold a->b
register c1 web 10.0.0.2:80
advance 1.5s
disconnect c1
advance 1.1s
deliver a->b DELETE c1
release a->b
{_SETTLED}""",
        "B27": f"""{_PUBLISHED}
crash b
advance 500ms
hold b->a
hold b->c
restart b
advance 50ms
answer-late b->a SNAPSHOT
disconnect c1
advance 1.5s
reply b->a SNAPSHOT
release b->a
release b->c
{_SETTLED}""",
        "B31": f"""{_PUBLISHED}
cut a->b
advance 45s
heal a->b
advance 30s
checkpoint
""",
        "B32": f"""{_PUBLISHED}
crash b
advance 5s
restart b
{_SETTLED}""",
        "B33": f"""{_PUBLISHED}
cut b->a
cut b->c
cut c->a
crash b
crash c
restart b
restart c
advance 2s
heal b->a
heal b->c
heal c->a
advance 100s
checkpoint
""",
        "B42": f"""{_PUBLISHED}
garble a->b DELETE c1
disconnect c1
{_SETTLED}""",
        "m-cleaner-drops-native": """
connect c1 a
register c1 web 10.0.0.1:80
advance 200s
checkpoint
""",
        "m-delete-retried-as-change": f"""{_PUBLISHED}
drop a->b DELETE c1
disconnect c1
{_SETTLED}""",
        "m-one-worker": """
advance 60s
connect c1 a
connect c2 a
hold a->b
register c1 web 10.0.0.1:80
register c2 web 10.0.0.2:80
advance 7s
release a->b
advance 30s
checkpoint
""",
        "m-query-creates": f"""{_PUBLISHED}
hold a->b
advance 2.5s
disconnect c1
advance 1.1s
deliver a->b DELETE c1
deliver a->b VERIFY c1
release a->b
{_SETTLED}""",
        "m-verify-to-one": """
advance 60s
connect c1 a
register c1 web 10.0.0.1:80
advance 60s
checkpoint
""",
        "B17": f"""
connect c1 a
advance 3.5s
{_CHANGES_BEFORE_EACH_VERIFY}
{_SETTLED}""",
    }
)
