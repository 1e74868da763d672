"""device_part.py with an nvcc of a few lines: what it asks of it, the object that it makes, and what it says when that goes wrong."""

import os
import signal
import subprocess
import sys
import tempfile

import checks

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

NVCC = """#!/bin/sh
echo "$@" >> "$LOG"
case " $* " in
*" -x c++ "*)
	while [ "$1" != -c ]; do shift; done
	exec cc -x c++ -fPIC -c "$2" -o "$4" ;;
esac
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=$2 ;;
	--keep-dir) keep=$2 ;;
	--dependency-output) deps=$2 ;;
	esac
	shift
done
%s
cp "$LOG.ptx" "$keep/x.ptx"
printf 'machine code' > "$out"
[ -z "$deps" ] || printf '%%s : x.cu \\\n  y.h\n' "$out" > "$deps"
"""
PTX = """.version 9.0
.target sm_90
\t// .weak .entry _Z6remarkv(
.visible .entry _Z4onePi(
\t.param .u64 .ptr .align 1 _Z4onePi_param_0
)
.weak .entry _Z4twoPi(
.func helper(
"""


class Part:
    def __init__(self, before="", kernels=PTX):
        self.folder = tempfile.mkdtemp(prefix="a part ", dir=BASE)
        self.log, self.out, self.deps = (os.path.join(self.folder, n) for n in ("log", "x.o", "x.d"))
        nvcc = os.path.join(self.folder, "nvcc")
        for path, text in ((nvcc, NVCC % before), (self.log + ".ptx", kernels)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        os.chmod(nvcc, 0o755)
        env = dict(os.environ, LOG=self.log, TMPDIR=self.folder)
        self.result = subprocess.run([sys.executable, os.path.join(ROOT, "recipes/device_part.py"), nvcc, "--dependency-output", self.deps, "-ccbin",
                                      "g++-12", "-DX=1", "-c", "x.cu", "-o", self.out, "-O3"],
                                     env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)

    def commands(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read().splitlines()


def nvcc_is_asked_for_the_device_alone():
    p = Part()
    assert p.result.returncode == 0, p.result.stdout
    device, host = p.commands()
    assert " -fatbin " in device and " -c " not in device and "x.cu" in device and "-DX=1 -O3" in device.replace("x.cu ", ""), device
    assert host.startswith("-ccbin g++-12 -x c++") and "x.cu" not in host, host


def the_object_holds_the_code_and_a_symbol_of_each_kernel():
    p = Part()
    said = subprocess.run(["nm", p.out], stdout=subprocess.PIPE, universal_newlines=True).stdout
    assert sorted(line.split()[2] for line in said.splitlines() if " W _Z" in line) == ["_Z4onePi", "_Z4twoPi"], said
    with open(p.out, "rb") as f:
        b = f.read()
    assert b"machine code" in b and b".nv_fatbin" in b and b"__cudaRegisterFunction" in b


def the_build_system_is_told_of_the_object():
    p = Part()
    with open(p.deps, encoding="utf-8") as f:
        text = f.read()
    assert text.startswith(p.out.replace(" ", "\\ ") + " :") and "y.h" in text, text


def nothing_stays_behind():
    p = Part()
    assert not [n for n in os.listdir(p.folder) if n.startswith("part-")]


def what_the_compiler_says_and_how_it_ended_is_passed_on():
    p = Part("echo 'x.cu(1): error: no'; exit 2")
    assert p.result.returncode == 2 and "error: no" in p.result.stdout and not os.path.exists(p.out)
    assert Part("kill -9 $$").result.returncode == -signal.SIGKILL


def code_without_a_kernel_is_an_error():
    p = Part(kernels=".func helper(")
    assert p.result.returncode == 1 and "no kernel came out of it" in p.result.stdout


with tempfile.TemporaryDirectory(prefix="fa-device-part-") as BASE:
    checks.run_all(globals(), ("Part",))
