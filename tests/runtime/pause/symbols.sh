#!/bin/sh
# Code between clone and exec may not call anything that allocates, locks or returns: its undefined symbols must be in the given
# list.
#   symbols.sh LIBRARY ALLOWED...
library=$1
shift
status=0
for symbol in $(nm -u "$library" | awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u); do
  case $symbol in
    # functions of the library itself, from another file
    *coracle*launch*|*coracle*sys*) nm "$library" | grep -q " T $symbol\$" && continue ;;
  esac
  for allowed; do
    [ "$symbol" = "$allowed" ] && continue 2
  done
  echo "$library calls $symbol"
  status=1
done
exit $status
