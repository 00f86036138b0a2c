"""Where the reference node differs from a real server and stays so: one entry for each reason, and why it stays.

Where a deviation shows, and what both sides say there, is in `listed`, a row for each difference. A difference without
a row fails a run, and so does a row that a release no longer shows: then either the node has changed, or the scripts
no longer see it.
"""

from __future__ import annotations

from collections.abc import Mapping

DEVIATIONS: Mapping[str, str] = {
    "DEV-MESSAGE": (
        "The text of an error is a real server's own: the words of Jackson, of Spring, of a NullPointerException. "
        "Type, codes and status are the same, and nothing else is read by the SDKs. The node says which field was "
        "wrong, which helps whoever sent it more than the name of a Java class."
    ),
    "DEV-NO-CONSOLE": (
        "The servers that can be fetched are the naming module alone. In a full distribution its module `console` "
        "puts errors of the v2 API into the wrapper, which these servers answer as plain text, and serves the health "
        "checks under `/v1/console`. The node answers as the full distribution does."
    ),
    "DEV-TRAILING-TEXT": (
        "Jackson stops reading at the end of the first JSON value, the node refuses a body that goes on after it "
        "(502). No client writes two values into one body."
    ),
    "DEV-METADATA-POISON": (
        "Metadata that a user calls `publishInstanceWeight` is taken for the weight, and as it is a text every later "
        "query of that service fails on a real server, for every client. The node takes a text for no weight."
    ),
    "DEV-NO-IP": (
        "Over gRPC a real server takes an instance without ip, and then lists a host that nobody can reach. The node "
        "refuses it (400)."
    ),
    "DEV-PERSISTENT": (
        "Persistent instances live in Raft, which the node does not have, so it refuses them with a text that says "
        "so. A real server without a Raft leader answers 500 over HTTP; in an InstanceRequest it overlooks that the "
        "instance is not ephemeral and takes it for one that is. SDKs send persistent instances elsewhere."
    ),
    "DEV-BLANK-NAMES": (
        "Up to 2.2.4 a real server registers a service or a group whose name is blank, and from then on no list of "
        "its group can be read any more (500); from 2.3.0 on it refuses the registration and answers the query. The "
        "node refuses both, in the words that a query gets up to 2.2.4."
    ),
    "DEV-WHOLE-APPLY": (
        "A real server creates the client before it reads the lists, so a CHANGE whose lists do not fit together "
        "leaves an empty client behind; one whose instance has no `extendDatum` is taken over, and every list of that "
        "service fails afterwards. The node reads a message whole before anything changes. Members never send either."
    ),
    "DEV-UNREAD-REVISION": (
        "2.0.x does not read the revision of a CHANGE, so it does not mind what is written there; and it still has a "
        "processor for the instance lists of 1.x, which fails where the node says that it handles no such type."
    ),
    "DEV-REPORT-BODY": (
        "A member report whose body is no JSON is answered 500 with the words of Spring; the node answers as to any "
        "other report that names no member: 200, and the code 400 in the wrapper. Members send JSON."
    ),
    "DEV-REFRESH-TIME": (
        "A server keeps in `extendInfo` when it last heard from a member, 2.0.x of itself too. It is for the eyes of "
        "an operator; no server reads it. The node does not keep it."
    ),
    "DEV-MEMBER-AS-TOLD": (
        "2.0.x drops an ability of a member that it does not know itself; the node shows what the member told."
    ),
    "DEV-HTTP-RANGES": (
        "Over HTTP a real server takes 70000 for a port up to 2.2.4, and NaN for a weight in every release, which it "
        "then writes into lists as something that is no JSON number. A word where v2 wants a number is a 500 with the "
        "words of Spring. The node refuses them all with 400."
    ),
    "DEV-NULL-METADATA": (
        "A null in the metadata of an HTTP registration stays a null in lists. The node leaves it out: Python and Go "
        "SDKs refuse a list with it."
    ),
    "DEV-HTTP-ROUTES": (
        "HEAD is answered like GET here, a slash at the end makes another path, and a path that a release has for "
        "writing only is not known at all. A real server refuses HEAD and takes the slash. No client depends on it."
    ),
    "DEV-SERVICE-API": (
        "The management of services over HTTP (`/v1/ns/service` but for the list, `/v1/ns/catalog`) belongs to the "
        "console and keeps its data in Raft. The node has none of it: 501, as for any other path that is not there."
    ),
    "DEV-HTTP-PARAMETER-CHECK": (
        "From 2.3.0 on a filter reads the parameters of HTTP requests before their handlers and answers 400 without a "
        "content type; metadata that are no JSON make the filter itself fail (500). It is new in the server, and the "
        "node answers as 2.2.4 does: 400 with a text. 2.3.2 also stopped to take `yes` for true."
    ),
    "DEV-V2-BEAT": (
        "The v2 API of a real server wants a grouped name in a beat and a plain one everywhere else, so a beat in the "
        "form of its own registration is refused (400). The node takes both. No SDK beats over v2."
    ),
    "DEV-V2-GROUPED-NAME": (
        "Asked over v2 for `OTHER@@web`, a real server looks for a service `OTHER` or for one with that whole text as "
        "its name, by the operation. The node splits a grouped name everywhere, as v1 does."
    ),
    "DEV-2.0-SUBSCRIBE": (
        "2.0.x answers an unsubscription with disabled instances too, and leaves the cluster selector out of pushes. "
        "SDKs of that time look at neither."
    ),
    "DEV-2.0-PAGES": (
        "The error page of 2.0.x has a message, and it checks grouped names in the handler, which answers with a text "
        "where later releases show the page. The status is the same."
    ),
    "DEV-2.0-ENCODING": (
        "2.0.x reads bytes that are no UTF-8 as if they were, and fails at what is then missing; the node answers "
        "that the body is unreadable, as later releases do."
    ),
    "DEV-2.0-DOUBLE-WRITE": (
        "2.0.x has a switch and counters for its time beside 1.x servers, which the node does not play."
    ),
    "DEV-UDP-NAMES": (
        "A real server looks up whatever a client of 1.x gives as its address, and takes nothing for itself. The node "
        "sends packets to addresses only, which is what clients give; looking up a name would hold up everybody else."
    ),
    "DEV-OPERATOR-API": (
        "What operators look at and turn in services, health checks, Raft, ids and log levels, and what 2.0.x keeps "
        "for its upgrade from 1.x, is not there: it has nothing to do with Distro. The node answers as to any other "
        "path that is not there."
    ),
    "DEV-PROMETHEUS": (
        "The counters for Prometheus are there only where `management.endpoints.web.exposure.include` says so. The "
        "node shows its own without being told."
    ),
    "DEV-SWITCHES": (
        "A real server says `ok` to a switch of any name and to most values, and has some that the node keeps fixed: "
        "the threshold of 1.x, and how long a list may be cached. The node refuses what it cannot turn, so that "
        "nobody believes that it did."
    ),
    "DEV-CONSOLE-ERRORS": (
        "In a whole distribution the console handles the errors of all modules, and a parameter that is missing is a "
        "500 there; naming alone, and the node, answer 400."
    ),
    "DEV-PAGE-MESSAGE": (
        "The page for a path that is not there has a message in a whole distribution, and in 2.0.x. The node shows "
        "the page without, as naming alone does from 2.2 on. The status is the same."
    ),
    "DEV-LOGIN": (
        "To a wrong password a real server answers with the HTTP status 0, which is no HTTP and which clients report "
        "as a broken connection; to a user that it does not know with 500 from 2.2 on. The node answers both with "
        "403."
    ),
    "DEV-NO-USER-API": (
        "Users of a real server are kept in its database and managed over HTTP. Those of the node are a setting."
    ),
    "DEV-TOKEN": (
        "Tokens that no server makes, though they are signed with the right secret: a real server takes one without "
        "an expiry for one that never ends, and from 2.2 on one of a user without a name for an administrator's; one "
        "whose header says `typ`, as most libraries write it, it refuses from 2.2 on. The node refuses the first two "
        "and takes the third."
    ),
    "DEV-2.0-TOKEN": (
        "In 2.0.x the name of the token's header may be written in upper or lower case over gRPC, and over HTTP the "
        "token stands in a parameter or in `Authorization` only. The node reads tokens as later releases do; SDKs of "
        "all times write them so that both understand."
    ),
    "DEV-2.0-V2": (
        "2.0.x has the beginnings of the v2 API of instances, which nobody has used; the node has it from 2.2.0 on."
    ),
}
"""What differs, who could notice, and why the node does not follow, by id."""
