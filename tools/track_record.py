"""The track record on real servers: what is listed as a bug of some release is looked for in each of them.

For each release: the requirements that any release is known to fail, in one run, and every real-time scenario that is
named after a bug, by the commands of docs/reference/track-record.md. `--distribution DIRECTORY` names a release that
cannot be fetched (docs/how-to/nacos-from-source.md). `--keep` writes the answers to the data of that page as they come.
Exit code 1 when a bug that is listed for the release does not show, or another one does.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import results
from pages.track_record import NOT_SEEN, SEEN, bug_scenarios, has_bug, in_real_time, name_of

from distro_conformance.findings.symptoms import SYMPTOMS
from distro_conformance.targets.nacos import release_and_jars
from distro_conformance.targets.releases import RELEASES
from distro_conformance.verdict import UsageError

OF_REQUIREMENT = {
    "known": SEEN,
    "conforms": NOT_SEEN,
    "not-applicable": "does not apply",
    "violates": "fails otherwise",
}
OF_SCENARIO = {"violates": SEEN, "conforms": NOT_SEEN}
NOT_JUDGED = "not judged"


def by_requirements(target: str) -> Iterator[tuple[str, str]]:
    """(id of a requirement, the answer)."""
    wanted = dict.fromkeys(name for each in SYMPTOMS for name in each.about)
    options = [word for name in wanted for word in ("--requirement", name)]
    for row in asked("test", "node", "--target", target, *options)["requirements"]:
        yield row["id"], OF_REQUIREMENT.get(row["verdict"], NOT_JUDGED)


def by_scenarios(target: str) -> Iterator[tuple[str, str]]:
    """(path, the answer)."""
    for paths in bug_scenarios().values():
        for path in (path for path, _ in paths if in_real_time(path)):
            verdict = asked("replay", path, "--target", target)["verdict"]
            yield path, OF_SCENARIO.get(verdict, NOT_JUDGED)


def asked(*words: str) -> dict[str, Any]:
    """Raises RuntimeError when there is no answer."""
    _, document = results.asked(*words)
    if "error" in document:
        raise RuntimeError(document["error"])
    return document


def surprise(by: str, release: str, answer: str) -> bool:
    """Whether that contradicts the list. Nothing is decided by what was not judged."""
    listed, is_sure = has_bug(by, release)
    return answer == "fails otherwise" or (answer == SEEN and not listed) or (answer == NOT_SEEN and listed and is_sure)


def targets(releases: Sequence[str] | None, distributions: Sequence[str] | None) -> dict[str, str]:
    """Release -> its target. Raises UsageError for a directory without one."""
    fetched = releases or ([] if distributions else list(RELEASES))
    return {each: f"nacos:{each}" for each in fetched} | {
        release_and_jars(f"{each}/")[1].version: f"nacos:{each}" for each in distributions or ()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--release", action="append", choices=list(RELEASES), help="default: all that can be fetched")
    parser.add_argument("--distribution", action="append", metavar="DIRECTORY", help="a release that cannot be fetched")
    parser.add_argument("--only", choices=("requirements", "scenarios"))
    parser.add_argument("--keep", action="store_true", help="write the answers to docs/reference/track-record.json")
    options = parser.parse_args()
    commit, answered, wrong = results.commit(), 0, []
    ways = {"requirements": by_requirements, "scenarios": by_scenarios}
    try:
        asked_of = targets(options.release, options.distribution)
    except UsageError as error:
        parser.error(str(error))
    for release, target in asked_of.items():
        for way in [options.only] if options.only else ways:
            try:
                for by, answer in ways[way](target):
                    answered += 1
                    print(f"{release}: {by}: {answer}", file=sys.stderr, flush=True)
                    wrong += [f"{by} on {release} {answer}"] if surprise(by, release, answer) else []
                    row = {"answer": answer, "date": results.today(), "commit": commit}
                    if options.keep:
                        results.keep(results.TRACK_RECORD, name_of(by, release), row)
            except RuntimeError as error:
                wrong.append(f"{way} on {release}: {error}")
    headline = f"{answered} answers, {len(wrong)} not as listed" + "".join(f"; {each}" for each in wrong)
    print(json.dumps({"headline": headline}))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
