#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A file as the numbers of a C array: bytes.py FILE
import sys

with open(sys.argv[1], "rb") as file:
    print(",".join(map(str, file.read())))
