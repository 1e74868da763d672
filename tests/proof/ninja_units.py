"""Upstream's own build of the units whose file name matches a pattern: ninja, upstream's order and flags, no narrowing.

usage: ninja_units.py PATTERN        (in the folder of the unpacked sdist, under the interpreter that has torch)"""

import os
import re
import runpy
import sys

from torch.utils import cpp_extension

pattern, real = re.compile(sys.argv[1]), cpp_extension.CUDAExtension


def some(name, sources, *args, **kw):
    return real(name, [s for s in sources if pattern.search(s)], *args, **kw)


cpp_extension.CUDAExtension = some
os.environ["FLASH_ATTENTION_FORCE_BUILD"] = "TRUE"
sys.argv = ["setup.py", "build_ext"]
sys.path.insert(0, os.getcwd())
runpy.run_path("setup.py", run_name="__main__")
