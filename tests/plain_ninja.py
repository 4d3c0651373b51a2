#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes plain `ninja` build only what is installed, not the tests' programs: meson calls this script after it has written
build.ninja.

Before 1.7 meson makes the programs of all tests a part of the target "all", whatever `build_by_default` says. This script can be
removed with Debian 12, whose meson is 1.0. Source: mesonbuild/backend/ninjabackend.py, generate_ending; meson's release notes of
1.7.0.
"""
import os
import re

path = os.path.join(os.environ["MESON_BUILD_ROOT"], "build.ninja")
with open(path) as file:
    text = file.read()
text = re.sub(r"^build all: phony meson-test-prereq meson-benchmark-prereq", "build all: phony", text, flags=re.M)
with open(path, "w") as file:
    file.write(text)
