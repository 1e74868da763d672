"""One tiny CUDA (or HIP) unit and one tiny C++ unit side by side, linked and loaded, before hours are spent.

usage: preflight.py JOB.json     Prints "fainstall {…}" lines: check=NAME seconds=… cpu=…, or error=… next=… id=…"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def tell(**what):
    print("fainstall " + json.dumps(what, sort_keys=True), flush=True)


class Stop(Exception):
    def __init__(self, ident, text, step):
        super().__init__(text)
        self.id, self.step = ident, step


def run(argv, **kw):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          universal_newlines=True, **kw)


def known_cause(text, what):
    """The sentence for the first known cause that the output speaks of, else its first line with "error"."""
    with open(os.path.join(HERE, "causes.json"), encoding="utf-8") as f:
        rows = json.load(f)["rows"]
    for row in rows:
        m = re.search(row["match"], text)
        if m:
            fill = lambda s: re.sub(r"\{(\d)\}", lambda k: m[int(k[1])], s)  # noqa: E731
            return Stop(row["id"], fill(row["text"]), fill(row["next"]))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    bad = [line for line in lines if re.search("error|fatal", line, flags=re.I)] or lines[-1:] or ["no output"]
    return Stop("unknown", "%s: %s" % (what, bad[0]), "fainstall diagnose shows more of the log")


def is_rocm(job):
    return os.path.basename(job["nvcc_path"]) == "hipcc"


# ---- what can be read without compiling


def torch_folder():
    for folder in sys.path:
        if os.path.isfile(os.path.join(folder or ".", "torch", "version.py")):
            return os.path.abspath(os.path.join(folder, "torch"))
    raise Stop("torch_missing", "torch is not in the environment of %s" % sys.executable, "install torch there first")


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def check_toolkit(job, torch):
    nvcc = job["nvcc_path"]
    try:
        said = run([nvcc, "-V"], timeout=20).stdout
    except (OSError, subprocess.SubprocessError) as e:
        raise Stop("nvcc_broken", "%s does not run: %s" % (nvcc, e), "install the CUDA toolkit again, or set CUDA_HOME to one that works")
    m = re.search(r"release (\d+)\.(\d+)", said)
    if not m:
        raise Stop("nvcc_broken", "%s -V says no release: %s" % (nvcc, said.strip()[:200]), "install the CUDA toolkit again")
    cuda = re.search(r"^cuda\b[^=]*=\s*['\"](\d+)", read(os.path.join(torch, "version.py")), flags=re.M)
    if not cuda:
        raise Stop("torch_without_cuda", "torch in %s is built without CUDA" % os.path.dirname(torch), "install a torch for CUDA %s" % m[1])
    if cuda[1] != m[1] and os.environ.get("FAINSTALL_RELAX_CUDA") != "1":
        raise Stop("toolkit_major", "nvcc is of CUDA %s.%s, torch is built for CUDA %s" % (m[1], m[2], cuda[1]),
                   "use a CUDA %s toolkit, or a torch for CUDA %s, or --relax cuda-check" % (cuda[1], m[1]))
    known = set(re.findall(r"compute_(\w+)", run([nvcc, "--list-gpu-arch"], timeout=20).stdout))
    for arch in job["archs"]:
        if known and re.sub(r"[af]$", "", arch) not in known:
            raise Stop("arch", "nvcc %s.%s does not know the architecture %s; it knows %s" % (
                m[1], m[2], arch, ", ".join(sorted(known, key=lambda a: int(re.match(r"\d+", a)[0])))),
                "use a newer CUDA toolkit, or --arch with one of these")


def check_rocm(job, torch):
    """hipcc has no list of architectures: the tiny unit is compiled for those that are wanted."""
    hipcc = job["nvcc_path"]
    try:
        said = run([hipcc, "--version"], timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as e:
        raise Stop("hipcc_broken", "%s does not run: %s" % (hipcc, e), "install ROCm again, or set ROCM_PATH to one that works")
    m = re.search(r"HIP version: (\d+)\.(\d+)", said)
    if not m:
        lines = [line for line in said.splitlines() if line.strip()][-1:] or ["nothing"]
        raise Stop("hipcc_broken", "%s --version says no version of HIP: %s" % (hipcc, lines[0][:200]), "install ROCm's compiler again")
    hip = re.search(r"^hip\b[^=]*=\s*['\"](\d+)\.(\d+)", read(os.path.join(torch, "version.py")), flags=re.M)
    if not hip:
        raise Stop("torch_without_rocm", "torch in %s is built without ROCm" % os.path.dirname(torch), "install a torch for ROCm %s.%s" % m.groups())
    if hip[1] != m[1]:
        raise Stop("toolkit_major", "hipcc is of ROCm %s.%s, torch is built for ROCm %s.%s" % (m.groups() + hip.groups()),
                   "install ROCm %s with its compiler, or a torch for ROCm %s" % (hip[1], m[1]))


def check_host_compiler(job, cxx):
    """The limit stands in the toolkit's own header."""
    home = os.path.dirname(os.path.dirname(job["nvcc_path"]))
    header = read(os.path.join(home, "include", "crt", "host_config.h"))
    limit = re.search(r"__GNUC__ > (\d+)", header)
    said = run([cxx, "-dumpfullversion", "-dumpversion"], timeout=20).stdout.strip()
    version = re.match(r"(\d+)", said)
    if limit and version and "clang" not in run([cxx, "--version"], timeout=20).stdout and int(version[1]) > int(limit[1]):
        raise Stop("compiler_too_new", "%s is gcc %s; this nvcc accepts gcc %s at most" % (cxx, said, limit[1]),
                   "install g++-%s and set CXX=g++-%s" % (limit[1], limit[1]))


def check_python():
    if not os.path.isfile(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        raise Stop("python_headers", "Python's headers are not installed (%s/Python.h)" % sysconfig.get_paths()["include"],
                   "install the package python%d.%d-dev (Debian, Ubuntu) or python3-devel (Fedora, RHEL)" % sys.version_info[:2])
    for name in ("setuptools",):
        try:
            __import__(name)
        except ImportError:
            raise Stop("build_package", "the Python package %s is not in the environment of %s" % (name, sys.executable),
                       "install it there: %s -m pip install %s" % (sys.executable, name))
    if not shutil.which("ninja"):
        raise Stop("ninja", "ninja is not there; without it units are compiled one after another",
                   "%s -m pip install ninja" % sys.executable)


# ---- what must be tried


def cpu_of_children():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def compile_both(job, torch, cxx, folder):
    home = os.path.dirname(os.path.dirname(job["nvcc_path"]))
    include, hip = os.path.join(torch, "include"), is_rocm(job)
    cu, cpp = os.path.join(folder, "cu.o"), os.path.join(folder, "cpp.o")
    archs = [x for a in job["archs"] for x in ("-gencode", "arch=compute_%s,code=sm_%s" % (a, a))]
    standard = "-std=c++20" if "C++20" in read(os.path.join(include, "ATen", "ATen.h")) else "-std=c++17"
    jobs = {
        "HIP unit": [job["nvcc_path"], "-c", os.path.join(HERE, "unit.hip"), "-o", cu, standard, "-fPIC", "-O1"] + [
            "--offload-arch=" + a for a in job["archs"]],
        "cuda unit": [job["nvcc_path"], "-c", os.path.join(HERE, "unit.cu"), "-o", cu, standard, "-Xcompiler", "-fPIC",
                      "--threads", str(len(job["archs"]))] + archs,
        "C++ unit": [cxx, "-c", os.path.join(HERE, "unit.cpp"), "-o", cpp, standard, "-fPIC", "-O1", "-w", "-I" + include,
                     "-I" + os.path.join(include, "torch/csrc/api/include"), "-I" + os.path.join(home, "include"),
                     "-I" + sysconfig.get_paths()["include"]] + ["-DUSE_ROCM"] * hip,
    }
    del jobs["cuda unit" if hip else "HIP unit"]
    began, before = time.monotonic(), cpu_of_children()
    running = {name: subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      universal_newlines=True, errors="replace") for name, argv in jobs.items()}
    for name, child in running.items():
        out = child.communicate()[0]
        print(out, end="")
        if child.returncode != 0:
            for other in running.values():
                other.kill()
            raise known_cause(out, name)
        tell(check=name, seconds=round(time.monotonic() - began, 2), cpu=round(cpu_of_children() - before, 2))
        before = cpu_of_children()
    return [cu, cpp]


def link_and_load(job, torch, cxx, objects, folder):
    home = os.path.dirname(os.path.dirname(job["nvcc_path"]))
    libs = [d for d in (os.path.join(home, "lib64"), os.path.join(home, "lib")) if os.path.isdir(d)]
    so = os.path.join(folder, "fainstall_preflight.so")
    began = time.monotonic()
    done = run([cxx, "-shared", "-o", so] + objects + ["-L" + d for d in libs] + [
        "-L" + os.path.join(torch, "lib"), "-lc10", "-lamdhip64" if is_rocm(job) else "-lcudart", "-Wl,-rpath," + os.path.join(torch, "lib")] + [
        "-Wl,-rpath," + d for d in libs])
    print(done.stdout, end="")
    if done.returncode != 0:
        raise known_cause(done.stdout, "link")
    tell(check="link", seconds=round(time.monotonic() - began, 2))
    began = time.monotonic()
    done = run([sys.executable, "-c", "import ctypes, sys; ctypes.PyDLL(sys.argv[1]).PyInit_fainstall_preflight", so])
    print(done.stdout, end="")
    if done.returncode != 0:
        raise known_cause(done.stdout, "load")
    tell(check="load", seconds=round(time.monotonic() - began, 2))


def main():
    job = json.loads(read(sys.argv[1]))
    cxx = os.environ.get("FAINSTALL_GATE_CXX") or os.environ.get("CXX") or "c++"
    folder = tempfile.mkdtemp(prefix="fainstall-preflight-")
    try:
        torch = torch_folder()
        if is_rocm(job):
            check_rocm(job, torch)
        else:
            check_toolkit(job, torch)
            check_host_compiler(job, cxx)
        check_python()
        link_and_load(job, torch, cxx, compile_both(job, torch, cxx, folder), folder)
    except Stop as e:
        tell(error=str(e), next=e.step, id=e.id)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
