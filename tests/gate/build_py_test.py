"""build.py around a setup.py, a torch and a setuptools of a few lines: what a changed source does, and that torch itself is never loaded."""

import json
import os
import subprocess
import sys
import tempfile

import checks

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETUP = """
import os
from setuptools import setup
import torch
from torch.utils.cpp_extension import CUDAExtension, BuildExtension
%s
setup(name="flash_attn", version="2.8.3+" + os.environ["FLASH_ATTN_LOCAL_VERSION"])
"""
EXTENSION = """
import torch
from ._filelock import FileLock  # reaches into the library from 2.15 on
from torch._utils_internal import get_file_path
HOME = get_file_path("torch")
assert os.path.samefile(HOME, os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), HOME
class BuildExtension: pass
def CUDAExtension(name, sources, **kw):
    print("ASKED " + " ".join(kw["extra_compile_args"]["nvcc"]) + " | " + " ".join(os.path.basename(s) for s in sources))
    made = types.SimpleNamespace(include_dirs=["the", "toolkit"], libraries=[])
    atexit.register(lambda: print("INCLUDES " + " ".join(made.include_dirs)))
    return made
"""
SETUPTOOLS = """
import os, sys
def setup(name, version, **kw):
    from setuptools.command.egg_info import egg_info
    e = egg_info()
    e.egg_info = os.getcwd()
    e.run()
    if "bdist_wheel" in sys.argv:
        folder = sys.argv[sys.argv.index("--dist-dir") + 1]
        os.makedirs(folder)
        open(os.path.join(folder, "%s-%s-py3-none-any.whl" % (name, version)), "w").close()
"""
UNITS = """
CUDAExtension(name="flash_attn_2_cuda", sources=["csrc/flash_attn/flash_api.cpp"] + ["csrc/flash_attn/src/%s" % u for u in {units!r}],
    include_dirs=[], extra_compile_args={{"cxx": ["-O3"], "nvcc": ["-O3", "-gencode", "arch=compute_80,code=sm_80", "--threads", "4"]}})
"""


def put(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def build(setup, profile="full", units=(), entry="", headers=()):
    """(what build.py said in JSON, all of its output, folder)"""
    folder = tempfile.mkdtemp(prefix="b-", dir=BASE)
    at = lambda *parts: os.path.join(folder, *parts)  # noqa: E731
    put(at("nvcc"), "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n", 0o755)
    put(at("site/torch/version.py"), "__version__ = '2.15.0+cu130'\ncuda = '13.0'\nhip = None\n")
    put(at("site/torch/__init__.py"), "raise ImportError('the real torch was loaded')\n")
    put(at("site/torch/utils/__init__.py"), "")
    put(at("site/torch/utils/_filelock.py"), "from torch.monitor import _WaitCounter\n")
    put(at("site/torch/utils/cpp_extension.py"), "import atexit\nimport os\nimport types\n" + EXTENSION)
    put(at("site/setuptools/__init__.py"), SETUPTOOLS)
    put(at("site/setuptools/dist.py"), "class Distribution: pass\n")
    put(at("site/setuptools/command/__init__.py"), "")
    put(at("site/setuptools/command/egg_info.py"), "class egg_info:\n    def run(self): pass\n")
    put(at("site/distutils/command/build.py"), "class build:\n    def initialize_options(self): pass\n")
    for empty in ("distutils/__init__", "distutils/command/__init__", "packaging/__init__", "packaging/version", "wheel/__init__",
                  "wheel/bdist_wheel", "typing_extensions", "psutil"):
        put(at("site", empty + ".py"), "")
    put(at("source/setup.py"), SETUP % setup)
    put(at("source/csrc/flash_attn/flash_api.cpp"), entry)
    for header in headers:
        put(at(header), "")
    for u in units:
        put(at("source/csrc/flash_attn/src", u), "template<> void run_mha_fwd_<cutlass::half_t, 64, false>(Flash_fwd_params &params, cudaStream_t stream) {}")
    put(at("job.json"), json.dumps({"source": at("source"), "build": at("source/build"), "wheel_dir": at("wheels"), "version": "2.8.3",
                                    "nvcc_path": at("nvcc"), "profile": profile, "archs": ["90"], "dtypes": [], "head_dims": [],
                                    "features": [], "backward": False, "cores": 1, "expected": {}}))
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": at("site"), "CUDA_HOME": folder, "MAX_JOBS": "1", "LC_ALL": "C.UTF-8"}
    out = subprocess.run([sys.executable, os.path.join(ROOT, "recipes/build.py"), at("job.json")], env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, universal_newlines=True).stdout
    said = {}
    for line in out.splitlines():
        if line.startswith("fainstall {"):
            said.update(json.loads(line[10:]))
    return said, out, folder


def the_wheel_comes_out_and_torch_is_not_loaded():
    said, out, folder = build(UNITS.format(units=["flash_fwd_hdim64_fp16_sm80.cu"]), units=["flash_fwd_hdim64_fp16_sm80.cu"])
    assert "real torch" not in out and said.get("wheel", "").endswith("whl"), out
    assert said["wheel"].endswith("flash_attn-2.8.3+fa.full.sm90.cu130.torch215-py3-none-any.whl"), out
    with open(os.path.join(folder, "source/fainstall.json"), encoding="utf-8") as f:
        assert json.load(f)["torch"] == "2.15.0+cu130"


def its_architectures_and_threads_give_way():
    said, out, _ = build(UNITS.format(units=["flash_fwd_hdim64_fp16_sm80.cu"]), units=["flash_fwd_hdim64_fp16_sm80.cu"])
    asked, = [line for line in out.splitlines() if line.startswith("ASKED")]
    assert asked.split(" | ")[0] == "ASKED -O3 -gencode arch=compute_90,code=sm_90 --threads 1", asked
    assert said["units"] == ["flash_api", "flash_fwd_hdim64_fp16_sm80"]


def headers_that_a_toolkit_from_wheels_lacks_are_those_of_torch():
    """Up to 2.7.0 the entry file includes a header of torch's that includes cuBLAS's, cuSPARSE's and cuSOLVER's."""
    old = {"units": ["flash_fwd_hdim64_fp16_sm80.cu"], "entry": "#include <ATen/cuda/CUDAContext.h>\n"}
    setup, whole = UNITS.format(units=old["units"]), ["cublas_v2.h", "cusparse.h", "cusolverDn.h"]
    _, out, _ = build(setup, **old, headers=["include/" + h for h in whole])
    assert "INCLUDES the toolkit\n" in out, out
    _, out, folder = build(setup, **old, headers=["include/" + whole[0]] + ["site/nvidia/cu13/include/" + h for h in whole])
    assert "INCLUDES the toolkit %s/site/nvidia/cu13/include\n" % folder in out, out
    said, out, _ = build(setup, **old)
    assert "needs cublas_v2.h" in said["error"] and "2.7.1.post4" in said["next"], out
    said, out, _ = build(setup, units=old["units"], entry="#include <ATen/cuda/CUDAContextLight.h>\n")
    assert "error" not in said, out


def a_source_with_kernels_of_other_names_gets_no_profile():
    renamed = UNITS.format(units=["attention_64.cu"])
    said, out, folder = build(renamed, profile="inference", units=["attention_64.cu"])
    assert "no kernel that a profile knows" in said["error"] and said["next"] == "build all of it: --profile full", out
    assert not os.path.exists(os.path.join(folder, "wheels"))
    said, out, _ = build(renamed, units=["attention_64.cu"])
    assert said["units"] == ["flash_api", "attention_64"], out


def a_profile_that_leaves_nothing_stops_before_compiling():
    said, out, _ = build(UNITS.format(units=["flash_fwd_hdim64_fp16_sm80.cu"]), profile="inference", units=["flash_fwd_hdim64_fp16_sm80.cu"])
    assert "this release has no dtype bf16; it has fp16" in said["error"] and "ASKED" not in out, out


def a_setup_that_makes_no_wheel_is_told():
    said, out, _ = build("import sys; sys.exit(0)")
    assert "wheel" not in said, out
    said, out, _ = build(UNITS.format(units=["flash_fwd_hdim64_fp16_sm80.cu"]) + "import sys; sys.argv[1:] = ['--version']",
                         units=["flash_fwd_hdim64_fp16_sm80.cu"])
    assert "left 0 wheels" in said["error"], out


def a_setup_that_stops_says_where_and_why():
    for setup, error in (("this is no python", "setup.py, line 6: SyntaxError: invalid syntax"),
                         ("raise RuntimeError('no card\\nmore')", "setup.py, line 6: RuntimeError: no card"),
                         ("import sys; sys.exit(3)", "setup.py ended by itself: exit status 3"),
                         ("import sys; sys.exit('no nvcc')", "setup.py ended by itself: no nvcc"),
                         ("", "setup.py asked for no CUDA extension; this is not the source of flash-attn 2.8.3")):
        said, out, _ = build(setup)
        assert said.get("error") == error and "wheel" not in said, out


def what_the_stand_in_lacks_is_tried_with_the_real_torch():
    """And its own words are the ones that are told, not those of the try before."""
    said, out, _ = build("import a_module_nobody_has")
    assert "once more with the real torch" in out and said.get("error", "").endswith("ImportError: the real torch was loaded"), out


with tempfile.TemporaryDirectory(prefix="fa-build-py-test-") as BASE:
    checks.run_all(globals(), ("put", "build"))
