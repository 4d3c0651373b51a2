#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the libraries that the daemon loads, since they take memory for as long as it runs: it links exactly those given here,
# and their own dependencies stay few. A library that is needed rarely belongs to a separate process (coracle-image).
#   libraries.sh PROGRAM NAME…    names without "lib" and version
program=$1
shift
status=0
for library in $(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  name=${library%%.so*}
  name=${name#lib}
  case " $* asan ubsan tsan gcov ld-linux-x86-64 ld-linux-aarch64 " in
    *" $name "*) ;;
    *) echo "$program loads $library, which is not in its list"; status=1 ;;
  esac
done
most=40
all=$(ldd "$program" | wc -l)
[ "$all" -gt 1 ] || { echo "ldd says nothing of $program"; status=1; }
[ "$all" -le $most ] || { echo "$program loads $all libraries, more than $most:"; ldd "$program"; status=1; }
exit $status
