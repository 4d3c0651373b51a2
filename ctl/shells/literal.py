#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A text file as a raw string literal of C++: literal.py FILE
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
if ')~"' in text:
    sys.exit(f'{sys.argv[1]}: contains )~", which ends the literal')
print(f'R"~({text})~"')
