"""preflight.py against toolkits that are damaged or do not fit: each is named by its own cause, before or without compiling."""

import json
import os
import subprocess
import sys
import tempfile

import checks

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NVCC = """case $1 in
-V) echo 'Cuda compilation tools, release 13.0, V13.0.88' ;;
--list-gpu-arch) echo compute_80; echo compute_90 ;;
*) %s ;;
esac"""
CXX = """case $1 in
-dumpfullversion) echo %s ;;
--version) echo 'g++ (GCC)' ;;
*) exit 0 ;;
esac"""


def put(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


class Machine:
    """A toolkit, a compiler and a torch of a few lines; what it is told to lack or to say is changed by the check."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="m-", dir=BASE)
        self.nvcc = self.at("cuda/bin/nvcc")
        self.script("cuda/bin/nvcc", NVCC % "exit 0")
        self.script("bin/c++", CXX % "12.2.0")
        self.script("bin/ninja", "exit 0")
        put(self.at("cuda/include/crt/host_config.h"), "#if __GNUC__ > 15\n#error\n#endif\n")
        put(self.at("site/torch/version.py"), "cuda: Optional[str] = '13.0'\n")
        put(self.at("include/Python.h"), "")

    def at(self, name):
        return os.path.join(self.folder, name)

    def script(self, name, text):
        put(self.at(name), "#!/bin/sh\n%s\n" % text, 0o755)

    def preflight(self, archs=("90",)):
        put(self.at("job.json"), json.dumps({"nvcc_path": self.nvcc, "archs": archs}))
        env = {"PATH": self.at("bin") + ":/usr/bin:/bin", "PYTHONPATH": self.at("site"), "FAINSTALL_GATE_CXX": self.at("bin/c++"),
               "LC_ALL": "C.UTF-8", "TMPDIR": self.folder}
        program = "import runpy, sysconfig, sys; p = sysconfig.get_paths; sysconfig.get_paths = lambda *a, **k: dict(p(*a, **k), include=%r); " \
                  "sys.argv = ['preflight.py', %r]; sys.modules.setdefault('setuptools', sys); runpy.run_path(%r, run_name='__main__')" % (
                      self.at("include"), self.at("job.json"), os.path.join(ROOT, "recipes/preflight/preflight.py"))
        out = subprocess.run([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             universal_newlines=True).stdout
        rows = [json.loads(line[10:]) for line in out.splitlines() if line.startswith("fainstall {")]
        said = [row for row in rows if "error" in row]
        assert len(said) == 1, out
        assert said[0]["next"], said
        return said[0]


def named(said, ident, *words):
    assert said["id"] == ident, said
    for word in words:
        assert word in said["error"], said


def an_nvcc_that_is_a_broken_link():
    m = Machine()
    os.remove(m.nvcc)
    os.symlink("nowhere", m.nvcc)
    named(m.preflight(), "nvcc_broken", m.nvcc)


def an_nvcc_that_says_nothing():
    m = Machine()
    m.script("cuda/bin/nvcc", "exit 1")
    named(m.preflight(), "nvcc_broken", "says no release")


def a_toolkit_of_another_major():
    m = Machine()
    put(m.at("site/torch/version.py"), "cuda = '12.8'\n")
    said = m.preflight()
    named(said, "toolkit_major", "nvcc is of CUDA 13.0, torch is built for CUDA 12")
    assert "--relax cuda-check" in said["next"]


def a_torch_without_cuda():
    m = Machine()
    put(m.at("site/torch/version.py"), "cuda = None\n")
    named(m.preflight(), "torch_without_cuda")


def an_architecture_that_this_nvcc_does_not_know():
    named(Machine().preflight(["90", "130"]), "arch", "does not know the architecture 130; it knows 80, 90")


def a_compiler_too_new_is_read_from_the_header():
    m = Machine()
    m.script("bin/c++", CXX % "16.1.0")
    said = m.preflight()
    named(said, "compiler_too_new", "gcc 16.1.0", "gcc 15 at most")
    assert said["next"] == "install g++-15 and set CXX=g++-15"


def python_without_headers():
    m = Machine()
    os.remove(m.at("include/Python.h"))
    named(m.preflight(), "python_headers")


def what_nvcc_says_is_looked_up():
    for text, ident, words in (
            ("cc1plus: fatal error: error writing to /tmp/x.s: No space left on device", "disk", "the disk is full"),
            ("crt/host_config.h:140: error: #error -- unsupported GNU version! gcc versions later than 15 are not supported!", "compiler_too_new", "gcc 15 at most"),
            ("nvcc fatal: cicc: not found", "toolkit_incomplete", "cicc is missing"),
            ("fatal error: nv/target: No such file or directory", "toolkit_headers", "nv/target is missing"),
            ("ptxas fatal   : Unsupported .version 9.5; current version is '9.0'", "toolkit_mixed", "PTX 9.5"),
            ("Killed", "memory", "want of memory")):
        m = Machine()
        m.script("cuda/bin/nvcc", NVCC % ("cat <<'TEXT'\n%s\nTEXT\nexit 1" % text))
        named(m.preflight(), ident, words)


def an_unknown_failure_is_told_by_its_first_error():
    m = Machine()
    m.script("cuda/bin/nvcc", NVCC % "echo note; echo 'x.cu(1): error: strange'; exit 1")
    named(m.preflight(), "unknown", "cuda unit: x.cu(1): error: strange")


def a_library_that_the_linker_does_not_find():
    m = Machine()
    m.script("bin/c++", CXX.replace("*) exit 0", "-shared) echo 'ld: cannot find -lcudart'; exit 1 ;;\n*) exit 0") % "12.2.0")
    named(m.preflight(), "linker_library", "cudart")


def rocm(compiles="exit 0", said="HIP version: 6.4.43484-123eb5128", torch="hip: Optional[str] = '6.4.43482-0f2d60242'"):
    m = Machine()
    m.script("rocm/bin/hipcc", "case $1 in\n--version) echo '%s' ;;\n*) %s ;;\nesac" % (said, compiles))
    m.nvcc = m.at("rocm/bin/hipcc")
    put(m.at("site/torch/version.py"), "cuda: Optional[str] = None\n%s\n" % torch)
    return m


def a_hipcc_that_does_not_start_or_says_nothing():
    m = rocm()
    os.remove(m.nvcc)
    named(m.preflight(["gfx942"]), "hipcc_broken", m.nvcc, "does not run")
    named(rocm(said="Can not find clang").preflight(["gfx942"]), "hipcc_broken", "Can not find clang")


def a_torch_of_another_rocm_or_of_none():
    named(rocm(said="HIP version: 7.1.25424-1").preflight(["gfx942"]), "toolkit_major", "hipcc is of ROCm 7.1", "torch is built for ROCm 6.4")
    named(rocm(torch="hip: Optional[str] = None").preflight(["gfx942"]), "torch_without_rocm")


def each_fault_of_rocm_by_its_words():
    for text, ident, words in (
            ("clang++: error: invalid target ID 'gfx950'; format is a processor name followed by", "arch", "does not know the architecture gfx950"),
            ("clang++: error: cannot find ROCm device library for gfx942; provide its path", "arch", "nothing for gfx942"),
            ("clang++: error: cannot find ROCm device library; provide its path via '--rocm-path'", "rocm_device_libs", "device libraries"),
            ("clang++: error: cannot find HIP runtime; provide its path via '--rocm-path'", "hip_headers", "headers of HIP"),
            ("unit.hip:2:10: fatal error: 'hip/hip_fp16.h' file not found", "hip_headers", "headers of HIP"),
            ("clang++: error: unable to execute command: Executable \"lld\" doesn't exist!", "rocm_incomplete", "lld is missing"),
            ("cuda_wrappers/cmath:27:15: fatal error: 'cmath' file not found", "cxx_headers", "cmath")):
        named(rocm("cat <<'TEXT'\n%s\nTEXT\nexit 1" % text).preflight(["gfx942"]), ident, words)


def the_runtime_of_hip_is_linked():
    m = rocm()
    m.script("bin/c++", CXX.replace("*) exit 0", "-shared) echo \"ld: $*\" | grep -q lamdhip64 && echo 'ld: cannot find -lamdhip64'; exit 1 ;;\n*) exit 0") % "12.2.0")
    named(m.preflight(["gfx942"]), "linker_library", "amdhip64")


with tempfile.TemporaryDirectory(prefix="fa-preflight-test-") as BASE:
    checks.run_all(globals(), ("put", "named", "Machine", "rocm"))
