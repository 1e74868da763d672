"""Compiles a file of CUDA kernels for the device alone.

usage: device_part.py NVCC FLAG… -c PART.cu -o PART.o …

nvcc reads a .cu file twice: for the device and for the host. A part of a unit needs no host code of its own, since the unit's launcher
holds it; without that second reading a part takes 10 s less. So nvcc makes the code for the device, as for any library that loads its
kernels itself (nvcc -fatbin), and this program wraps it into an object: the code, one symbol for each kernel under the very name that the
launcher refers to, and the calls that make the kernels known to the CUDA runtime when the library is loaded. The calls are those that
compilers of CUDA make: clang's are in its CGCUDANV.cpp, nvcc's in crt/host_runtime.h."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

TAKES_VALUE = ("-o", "--output-file", "-MF", "--dependency-output", "-MT", "--dependency-target-name")
ENTRY = re.compile(r"^\s*\.(?:visible|weak)\s+\.entry\s+(\w+)", re.M)


def split_command(args):
    """(flags without -c and -o, object, dependency file)"""
    flags, output, depends, i = [], None, None, 0
    while i < len(args):
        flag = args[i]
        value = args[i + 1] if flag in TAKES_VALUE and i + 1 < len(args) else None
        if flag in ("-o", "--output-file"):
            output = value
        elif flag not in ("-c", "--compile"):
            flags += [flag] if value is None else [flag, value]
        if flag in ("-MF", "--dependency-output"):
            depends = value
        i += 1 if value is None else 2
    return flags, output, depends


def kernels(folder):
    """Names of the kernels, read from what nvcc assembles."""
    names = set()
    for path in glob.glob(os.path.join(folder, "*.ptx")):
        with open(path, encoding="utf-8", errors="replace") as f:
            names.update(ENTRY.findall(f.read()))
    return sorted(names)


STUB = """extern "C" {
struct dim3; struct uint3;
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, struct uint3 *, struct uint3 *, struct dim3 *, struct dim3 *,
                            int *);
int atexit(void (*)(void));
}
__asm__(".section .nv_fatbin,\\"a\\"\\n.balign 8\\nfa_device_code:\\n.incbin \\"part.fatbin\\"\\n.balign 8\\n.previous\\n");
extern "C" const char fa_device_code[] __attribute__((visibility("hidden")));
static const struct { int magic, version; const void *code; void *names; } part __attribute__((section(".nvFatBinSegment"), used, aligned(8))) = {
    0x466243b1, 1, fa_device_code, 0};
STUBS
static const struct { void (*host)(); const char *name; } kernels[] = {
ROWS};
static void **handle;
static void leave() { __cudaUnregisterFatBinary(handle); }
static void __attribute__((constructor)) enter() {
  handle = __cudaRegisterFatBinary(const_cast<void *>(static_cast<const void *>(&part)));
  for (const auto &k : kernels)
    __cudaRegisterFunction(handle, reinterpret_cast<const char *>(k.host), const_cast<char *>(k.name), k.name, -1, 0, 0, 0, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  atexit(leave);
}
"""


def stub_text(names):
    """A kernel's address on the host is only its name tag: nothing calls it, cudaLaunchKernel looks it up."""
    declared = "".join('__attribute__((weak, visibility("hidden"))) void k%d() __asm__("%s");\nvoid k%d() { __builtin_trap(); }\n'
                       % (i, name, i) for i, name in enumerate(names))
    rows = "".join('    {k%d, "%s"},\n' % (i, name) for i, name in enumerate(names))
    return STUB.replace("STUBS", declared).replace("ROWS", rows)


def right_target(depends, output):
    """The dependency file names what nvcc made; the build system waits for the object."""
    with open(depends, encoding="utf-8", errors="surrogateescape") as f:
        target, colon, files = f.read().partition(" :")
    with open(depends, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write((output.replace(" ", "\\ ") if colon else target) + colon + files)


def compile_part(nvcc, args):
    flags, output, depends = split_command(args)
    folder = tempfile.mkdtemp(prefix="part-")
    code = os.path.join(folder, "part.fatbin")
    try:
        kept = os.path.join(folder, "kept")
        os.mkdir(kept)
        rc = subprocess.call([nvcc] + flags + ["-fatbin", "-o", code, "--keep", "--keep-dir", kept])
        if rc != 0:
            return rc
        names = kernels(kept)
        if not names:
            print("%s: error: no kernel came out of it" % output, file=sys.stderr)
            return 1
        if depends:
            right_target(depends, output)
        with open(os.path.join(folder, "stub.cpp"), "w", encoding="utf-8") as f:
            f.write(stub_text(names))
        host = [b for a, b in zip(flags, flags[1:]) if a == "-ccbin"][-1:]
        return subprocess.call([nvcc] + [w for h in host for w in ("-ccbin", h)] + [
            "-x", "c++", "-O1", "-Xcompiler", "-fPIC", "-c", "stub.cpp", "-o", os.path.abspath(output)], cwd=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    status = compile_part(sys.argv[1], sys.argv[2:])
    if status < 0:  # a compiler that the kernel killed: who called us is to see just that
        signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
        os.kill(os.getpid(), -status)
    sys.exit(status)
