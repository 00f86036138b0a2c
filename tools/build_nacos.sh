#!/bin/sh
# A Nacos distribution (bin, conf, target/nacos-server.jar) from a source tree of Nacos, for --target nacos:DIRECTORY.
#
#   tools/build_nacos.sh SOURCE MODULE [DIRECTORY]
#
# SOURCE is a checkout of one release, MODULE the module that makes the runnable jar: console up to 2.5, bootstrap from
# 3.0 on. DIRECTORY, ./nacos-VERSION by default, must not exist yet. Needs Maven and a JDK; tests and checks of the
# source tree are left out.
set -eu

fail() { echo "build_nacos: $1" >&2; exit 2; }

[ $# -eq 2 ] || [ $# -eq 3 ] || fail "usage: tools/build_nacos.sh SOURCE MODULE [DIRECTORY]"
source=$1 module=$2
[ -f "$source/distribution/conf/application.properties" ] || fail "$source is no source tree of Nacos"
[ -f "$source/$module/pom.xml" ] || fail "$source has no module $module: it is console up to 2.5, bootstrap from 3.0 on"
command -v mvn >/dev/null || fail "Maven (mvn) is not installed"
version=$(sed -n 's:.*<revision>\(.*\)</revision>.*:\1:p' "$source/pom.xml" | head -n 1)
target=${3:-nacos-${version:-built}}
[ ! -e "$target" ] || fail "$target is there already; name another directory"

mvn --batch-mode --quiet --file "$source/pom.xml" -Prelease-nacos -pl "$module" -am -Dmaven.test.skip=true -Drat.skip \
  -Dcheckstyle.skip -Dpmd.skip -Djacoco.skip -Denforcer.skip package

jar=$source/$module/target/nacos-server.jar
[ -f "$jar" ] || fail "Maven has not made $jar"
mkdir -p "$target/target"
cp -R "$source/distribution/bin" "$source/distribution/conf" "$target/"
cp "$jar" "$target/target/"
echo "$target"
