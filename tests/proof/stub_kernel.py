"""In nvcc's place: a function that does nothing, of the name that a kernel's .cu file defines, by the host compiler.

usage: stub_kernel.py RECIPES CUDA_INCLUDE WORDS OF NVCC…    (the source is a release's own .cu file)"""

import os
import subprocess
import sys

recipes, cuda = sys.argv[1:3]
words = sys.argv[3:]
sys.path.insert(0, recipes)
import profile_units as units  # noqa: E402

source = next(w for w in words if w.endswith(".cu"))
target = words[words.index("-o") + 1]
folder = os.path.dirname(os.path.abspath(source))
unit = units.Unit(source, folder)
text = ["#include <c10/util/Exception.h>", "#include <c10/cuda/CUDAException.h>", "#include <cutlass/numeric_types.h>"]
text += ['#include "namespace_config.h"'] if unit.space else []
text += ['#include "flash.h"', "namespace FLASH_NAMESPACE {" if unit.space else "", "template<> " + unit.signature() + " {}", "}" if unit.space else ""]
with open(target + ".cpp", "w", encoding="utf-8") as f:
    f.write("\n".join(text) + "\n")
includes = ["-I" + folder]
for i, word in enumerate(words):
    if word in ("-I", "-isystem"):
        includes.append("-I" + words[i + 1])
    elif word.startswith("-I"):
        includes.append(word)
depfile = words[words.index("-MF") + 1] if "-MF" in words else target + ".d"
standard = next((w for w in words if w.startswith("-std=")), "-std=c++17")
sys.exit(subprocess.call(["g++", standard, "-O0", "-w", "-fPIC", "-c", target + ".cpp", "-o", target, "-MD", "-MF", depfile] + includes + ["-I" + cuda]))
