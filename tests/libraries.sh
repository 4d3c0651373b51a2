#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the libraries that a program loads at its start. Those of the daemon take memory for as long as it runs, and those of
# coraclectl take time at every start. The program links exactly those given here, and their own dependencies stay few. A library
# that is needed rarely belongs to a separate process (coracle-image), or is loaded at its first use (runtime/base/shared_library.h).
#   libraries.sh PROGRAM MOST NAME…    names without "lib" and version; MOST: libraries in all
program=$1 most=$2
shift 2
status=0
for library in $(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  name=${library%%.so*}
  name=${name#lib}
  case " $* asan ubsan tsan gcov ld-linux-x86-64 ld-linux-aarch64 " in
    *" $name "*) ;;
    *) echo "$program loads $library, which is not in its list"; status=1 ;;
  esac
done
all=$(ldd "$program" | wc -l)
[ "$all" -gt 1 ] || { echo "ldd says nothing of $program"; status=1; }
[ "$all" -le "$most" ] || { echo "$program loads $all libraries, more than $most:"; ldd "$program"; status=1; }
exit $status
