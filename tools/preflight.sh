#!/bin/sh
# Reports in one sentence what this machine lacks: `preflight.sh python PYTHON`, before anything is installed, and
# `preflight.sh java`, before tests that start a Spark session.
fail() { echo "distrocheck: $1" >&2; exit 2; }

need_python() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "Python 3.11 or newer is needed, and '$1' is not; name one with 'make PYTHON=python3.11 ...'."
}

need_java() {
  java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
  command -v "$java" >/dev/null 2>&1 ||
    fail "Java 17 or newer is needed for the tests of Spark, and '$java' was not found; install a JDK or set JAVA_HOME."
  major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [ "${major:-0}" -ge 17 ] 2>/dev/null ||
    fail "Java 17 or newer is needed for the tests of Spark, and '$java' is version ${major:-unknown}; install a newer JDK or set JAVA_HOME."
}

case "$1" in
  python) need_python "$2" ;;
  java) need_java ;;
  *) fail "preflight.sh takes 'python PYTHON' or 'java', not '$1'" ;;
esac
