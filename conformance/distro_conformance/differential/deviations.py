"""Where the reference node differs from a real server and stays so: one entry for each reason.

A difference that no entry explains fails a run, and so does an entry that explains nothing on a release that it names:
then either the node has changed, or the scripts no longer see it.
"""

from __future__ import annotations

from distro_conformance.differential.beside_naming import BESIDE_NAMING, UP_TO_2_0
from distro_conformance.differential.compare import MISSING
from distro_conformance.differential.deviation import Deviation, Place, at
from distro_conformance.release import Span

FROM_2_2, FROM_2_3 = Span("2.2.0", "2.3.2"), Span("2.3.0", "2.3.2")
MISSING_PATTERN = MISSING.replace("{", "[{]").replace("}", "[}]")

_JAVA_TEXTS = (
    "errCode: 101*",  # Jackson
    "Cannot invoke *",  # a null that nobody looked for
    "Invalid request",
    "For input string*",
    "Param *",
    "Parameter *",
    "Instance can not be null.",
    "metadata format incorrect*",
    "service not found*",
    "caused: For input string*",
    "caused: Required *",
    "caused: Request method &#39;*",
    "Invalid signature",
    "unsupported signature algorithm",
    "unknown user!",
)

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "DEV-MESSAGE",
        (
            *(Place("*", path="body.message", real=text) for text in _JAVA_TEXTS),
            *(Place("*", path="body", real=text) for text in _JAVA_TEXTS),
            *at("names", "register, no namespace", path="body.message", real=MISSING_PATTERN),
        ),
        "The text of an error is a real server's own: the words of Jackson, of Spring, of a NullPointerException. "
        "Type, codes and status are the same, and nothing else is read by the SDKs. The node says which field was "
        "wrong, which helps whoever sent it more than the name of a Java class.",
    ),
    Deviation(
        "DEV-NO-CONSOLE",
        (
            *at("operator", "/v1/console/*", path=""),
            *(
                place
                for script in ("http-v2", "clients", "operator-v2", "member-list-v2")
                for path in ("type", "body")
                for place in at(script, path=path)
            ),
        ),
        "The servers that can be fetched are the naming module alone. In a full distribution its module `console` puts "
        "errors of the v2 API into the wrapper, which these servers answer as plain text, and serves the health checks "
        "under `/v1/console`. The node answers as the full distribution does.",
    ),
    Deviation(
        "DEV-TRAILING-TEXT",
        at("envelope-malformed", "trailing text", path=""),
        "Jackson stops reading at the end of the first JSON value, the node refuses a body that goes on after it "
        "(502). No client writes two values into one body.",
    ),
    Deviation(
        "DEV-METADATA-POISON",
        at("instances", "*publishInstanceWeight*", path=""),
        "Metadata that a user calls `publishInstanceWeight` is taken for the weight, and as it is a text every later "
        "query of that service fails on a real server, for every client. The node takes a text for no weight.",
    ),
    Deviation(
        "DEV-NO-IP",
        at("instances-refused", "*'ip': None*"),
        "Over gRPC a real server takes an instance without ip, and then lists a host that nobody can reach. The node "
        "refuses it (400).",
    ),
    Deviation(
        "DEV-PERSISTENT",
        (
            *at("instances-refused", "*'ephemeral': False*", "deregister persistent"),
            *at("http-errors", "*, persistent", path=""),
            *at("envelope-types", "PersistentInstanceRequest"),
        ),
        "Persistent instances live in Raft, which the node does not have, so it refuses them with a text that says so. "
        "A real server without a Raft leader answers 500 over HTTP; in an InstanceRequest it overlooks that the "
        "instance is not ephemeral and takes it for one that is. SDKs send persistent instances elsewhere.",
    ),
    Deviation(
        "DEV-BLANK-NAMES",
        (
            *at("names", *(f"{what}, {how} *" for what in ("register", "deregister") for how in ("blank", "empty"))),
            *at("names", *(f"query, {how} *" for how in ("blank", "empty", "no"))),
        ),
        "Up to 2.2.4 a real server registers a service or a group whose name is blank, and from then on no list of "
        "its group can be read any more (500); from 2.3.0 on it refuses the registration and answers the query. The "
        "node refuses both, in the words that a query gets up to 2.2.4.",
    ),
    Deviation(
        "DEV-WHOLE-APPLY",
        at(
            "distro-malformed",
            *(f"left by: {what}" for what in ("no namespaces", "fewer groups", "no instances", "fewer instances")),
            *("no extendDatum", "left by: no extendDatum"),
        ),
        "A real server creates the client before it reads the lists, so a CHANGE whose lists do not fit together "
        "leaves an empty client behind; one whose instance has no `extendDatum` is taken over, and every list of "
        "that service fails afterwards. The node reads a message whole before anything changes. Members never send "
        "either.",
    ),
    Deviation(
        "DEV-UNREAD-REVISION",
        at("distro-malformed", "*revision as text", "*revision beyond 32 bits", "resource type of 1.x"),
        "2.0.x does not read the revision of a CHANGE, so it does not mind what is written there; and it still has a "
        "processor for the instance lists of 1.x, which fails where the node says that it handles no such type.",
        UP_TO_2_0,
    ),
    Deviation(
        "DEV-REPORT-BODY",
        at("member-report-http", "malformed", "no body", path=""),
        "A member report whose body is no JSON is answered 500 with the words of Spring; the node answers as to any "
        "other report that names no member: 200, and the code 400 in the wrapper. Members send JSON.",
    ),
    Deviation(
        "DEV-REFRESH-TIME",
        (Place("*", path="*.lastRefreshTime"), Place("*", path="extendInfo.lastRefreshTime")),
        "A server keeps in `extendInfo` when it last heard from a member, 2.0.x of itself too. It is for the eyes of "
        "an operator; no server reads it. The node does not keep it.",
    ),
    Deviation(
        "DEV-MEMBER-AS-TOLD",
        (Place("member-list", path="*.grpcReportEnabled"), Place("operator", path="*.grpcReportEnabled")),
        "2.0.x drops an ability of a member that it does not know itself; the node shows what the member told.",
        UP_TO_2_0,
    ),
    Deviation(
        "DEV-HTTP-RANGES",
        (
            *at("loader-count", "a word", path=""),
            *at("http-errors", "*port 70000", "*port -1", "*weight NaN"),
            *at("http-v2", "*port 70000", "*port is a word", "*weight is a word"),
            *at("operator", "owner {'ip': 'a', *"),
        ),
        "Over HTTP a real server takes 70000 for a port up to 2.2.4, and NaN for a weight in every release, which it "
        "then writes into lists as something that is no JSON number. A word where v2 wants a number is a 500 with "
        "the words of Spring. The node refuses them all with 400.",
    ),
    Deviation(
        "DEV-NULL-METADATA",
        at("http-errors", "list, metadata with numbers", path="body.hosts*.metadata.c"),
        "A null in the metadata of an HTTP registration stays a null in lists. The node leaves it out: Python and Go "
        "SDKs refuse a list with it.",
    ),
    Deviation(
        "DEV-HTTP-ROUTES",
        (
            *at("http-errors", "HEAD /v1/ns/instance/list", "GET /v1/ns/instance/", path=""),
            *at("member-list-v2", "nodes", path=""),
        ),
        "HEAD is answered like GET here, a slash at the end makes another path, and a path that a release has for "
        "writing only is not known at all. A real server refuses HEAD and takes the slash. No client depends on it.",
    ),
    Deviation(
        "DEV-SERVICE-API",
        at("http-services", "GET /v1/ns/*", path=""),
        "The management of services over HTTP (`/v1/ns/service` but for the list, `/v1/ns/catalog`) belongs to the "
        "console and keeps its data in Raft. The node has none of it: 501, as for any other path that is not there.",
    ),
    Deviation(
        "DEV-HTTP-PARAMETER-CHECK",
        (
            *at("http-errors", "*metadata is *", "*metadata with an object", path=""),
            *at("http-errors", "*port *", "*cluster with a *"),
            *at("http-errors", "*enabled is yes"),
            *at("http-beat", "port is a word"),
            *at("http-v2", "*beat that is no JSON", "*metadata is a word", "*cluster with a blank", path=""),
        ),
        "From 2.3.0 on a filter reads the parameters of HTTP requests before their handlers and answers 400 without a "
        "content type; metadata that are no JSON make the filter itself fail (500). It is new in the server, and the "
        "node answers as 2.2.4 does: 400 with a text. 2.3.2 also stopped to take `yes` for true.",
        FROM_2_3,
    ),
    Deviation(
        "DEV-V2-BEAT",
        at("http-v2", "light beat*", "a beat that is no JSON", path=""),
        "The v2 API of a real server wants a grouped name in a beat and a plain one everywhere else, so a beat in the "
        "form of its own registration is refused (400). The node takes both. No SDK beats over v2.",
        FROM_2_2,
    ),
    Deviation(
        "DEV-V2-GROUPED-NAME",
        at("http-v2", "*, grouped name"),
        "Asked over v2 for `OTHER@@web`, a real server looks for a service `OTHER` or for one with that whole text as "
        "its name, by the operation. The node splits a grouped name everywhere, as v1 does.",
        FROM_2_2,
    ),
    Deviation(
        "DEV-2.0-SUBSCRIBE",
        at("subscribe", "the same for the cluster", "unsubscribe"),
        "2.0.x answers an unsubscription with disabled instances too, and leaves the cluster selector out of pushes. "
        "SDKs of that time look at neither.",
        UP_TO_2_0,
    ),
    Deviation(
        "DEV-2.0-PAGES",
        (
            *(
                place
                for script in ("http-errors", "http-forwarded", "member-list")
                for place in at(script, path="body.m*")
            ),
            *at("http-errors", "*service without *", path="type"),
            *at("http-errors", "*service without *", path="body"),
        ),
        "The error page of 2.0.x has a message, and it checks grouped names in the handler, which answers with a text "
        "where later releases show the page. The status is the same.",
        UP_TO_2_0,
    ),
    Deviation(
        "DEV-2.0-ENCODING",
        at("envelope-malformed", "not UTF-8", path="body.errorCode"),
        "2.0.x reads bytes that are no UTF-8 as if they were, and fails at what is then missing; the node answers that "
        "the body is unreadable, as later releases do.",
        UP_TO_2_0,
    ),
    Deviation(
        "DEV-2.0-DOUBLE-WRITE",
        (*at("operator", "switches", "names of the counters"), *at("switches", path="body.doubleWriteEnabled")),
        "2.0.x has a switch and counters for its time beside 1.x servers, which the node does not play.",
        UP_TO_2_0,
    ),
    *BESIDE_NAMING,
)
