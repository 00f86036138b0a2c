#!/bin/sh
# Says in one sentence what the machine lacks, before anything is installed or started.
python="$1"
fail() { echo "distrocheck: $1" >&2; exit 2; }

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  fail "Python 3.11 or newer is needed, and '$python' is not; name one with 'make PYTHON=python3.11 ...'."

java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
command -v "$java" >/dev/null 2>&1 ||
  fail "Java 17 or newer is needed for Spark, and '$java' was not found; install a JDK or set JAVA_HOME."
major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
[ "${major:-0}" -ge 17 ] 2>/dev/null ||
  fail "Java 17 or newer is needed for Spark, and '$java' is version ${major:-unknown}; install a newer JDK or set JAVA_HOME."
