"""The CK build (AMD): which kernels a profile compiles, by the names that generate.py of two releases makes, and what build.py hands over."""

import json
import os
import subprocess
import sys
import tempfile

import checks

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "recipes"))
import profile_ck as ck  # noqa: E402
import profile_units as units  # noqa: E402

ENTRIES = "    bool has_lse = true;\n                           false, // has_logits_soft_cap\n"
ENTRY = """#include "flash_common.hpp"
void mha_fwd() { bool has_lse = true; TORCH_CHECK(t >= 0, "invalid argument for fmha_fwd"); }
"""
# As upstream's: asks fnmatch for each kernel, writes those that pass and one file that chooses among them.
GENERATE = '''
import argparse, fnmatch, os
p = argparse.ArgumentParser()
for long in ("--direction", "--output_dir", "--list_blobs", "--filter", "--receipt"):
    p.add_argument("-" + long[2], long, default="")
a = p.parse_args()
names = [n for n in open(os.path.join(os.path.dirname(__file__), "names")).read().split() if n.startswith({"fwd": "fmha_fwd_d", "bwd": "fmha_bwd"}[a.direction])]
if a.filter:
    names = [n for n in names if fnmatch.fnmatch(n, a.filter)]
if a.list_blobs:
    open(a.list_blobs, "w").write("".join("%s.cpp\\n" % n for n in names + ["fmha_%s_api" % a.direction]))
else:
    for n in names + ["fmha_%s_api" % a.direction]:
        open(os.path.join(a.output_dir, n + ".cpp"), "w").write(n + " " + (" ".join(names) if n.endswith("api") else ""))
'''
SETUP = '''
import glob, os, shutil, subprocess, sys
from setuptools import setup
import torch
from torch.utils.cpp_extension import CUDAExtension, BuildExtension
for d in ("fwd", "bwd"):
    subprocess.run([sys.executable, "ck/01_fmha/generate.py", "-d", d, "--output_dir", "build", "--receipt", "2"], check=True)
if os.path.isdir(".git"):
    subprocess.run(["git", "submodule", "update", "--init", "ck"], check=True)
sources = ["csrc/flash_attn_ck/mha_fwd.cpp"] + glob.glob("build/fmha_*wd*.cpp")
for s in sources:
    shutil.copy(s, s[:-4] + ".cu")
CUDAExtension(name="flash_attn_2_cuda", sources=[s[:-4] + ".cu" for s in sources], include_dirs=[],
              extra_compile_args={"cxx": ["-O3"], "nvcc": ["--offload-arch=" + os.environ["GPU_ARCHS"]]})
setup(name="flash_attn", version="2.8.3+" + os.environ["FLASH_ATTN_LOCAL_VERSION"])
'''
EXTENSION = '''
class BuildExtension: pass
class Made: pass
def CUDAExtension(name, sources, **kw):
    m = Made()
    m.sources = [s[:-3] + ".hip" for s in sources]
    print("ASKED " + " ".join(kw["extra_compile_args"]["nvcc"]))
    return m
'''
SETUPTOOLS = '''
import os, sys
def setup(name, version, **kw):
    from setuptools.command.egg_info import egg_info
    e = egg_info()
    e.egg_info = os.getcwd()
    e.run()
    folder = sys.argv[sys.argv.index("--dist-dir") + 1]
    os.makedirs(folder)
    open(os.path.join(folder, "%s-%s-py3-none-any.whl" % (name, version)), "w").close()
'''


def names(release):
    with open(os.path.join(ROOT, "tests/data/ck/names-" + release), encoding="utf-8") as f:
        return f.read().split()


def chosen(release, entries=ENTRIES, **job):
    kernels = [ck.Kernel(n) for n in ck.choose(units.Profile(job), names(release), entries)]
    return {kind: len([k for k in kernels if k.kind == kind]) for kind in {k.kind for k in kernels}}


def put(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def build(profile="full", git=False, setup=SETUP, said="HIP version: 6.4.43484-123eb5128", before=(), **more):
    """(what build.py said in JSON, all of its output, a function that names files of the source)"""
    folder = tempfile.mkdtemp(prefix="b-", dir=BASE)
    at = lambda *parts: os.path.join(folder, *parts)  # noqa: E731
    put(at("rocm/bin/hipcc"), "#!/bin/sh\necho '%s'\n" % said, 0o755)
    put(at("site/torch/version.py"), "__version__ = '2.9.1+rocm6.4'\ncuda = None\nhip = '6.4.43482-0f2d60242'\n")
    put(at("site/torch/__init__.py"), "raise ImportError('the real torch was loaded')\n")
    put(at("site/torch/utils/__init__.py"), "")
    put(at("site/torch/utils/cpp_extension.py"), EXTENSION)
    put(at("site/setuptools/__init__.py"), SETUPTOOLS)
    put(at("site/setuptools/dist.py"), "class Distribution: pass\n")
    put(at("site/setuptools/command/__init__.py"), "")
    put(at("site/setuptools/command/egg_info.py"), "class egg_info:\n    def run(self): pass\n")
    put(at("site/distutils/command/build.py"), "class build:\n    def initialize_options(self): pass\n")
    for empty in ("distutils/__init__", "distutils/command/__init__", "packaging/__init__", "packaging/version", "wheel/__init__",
                  "wheel/bdist_wheel", "typing_extensions", "psutil"):
        put(at("site", empty + ".py"), "")
    put(at("source/setup.py"), setup)
    put(at("source/csrc/flash_attn_ck/mha_fwd.cpp"), ENTRY)
    put(at("source/ck/01_fmha/generate.py"), GENERATE)
    put(at("source/ck/01_fmha/names"), "\n".join(names("2.8.3")))
    for name in before:
        put(at("source/build", name), name)
    if git:
        put(at("source/.git/HEAD"), "")
    put(at("job.json"), json.dumps(dict({"source": at("source"), "build": at("source/build"), "wheel_dir": at("wheels"), "version": "2.8.3",
                                         "nvcc_path": at("rocm/bin/hipcc"), "profile": profile, "archs": ["gfx942"], "dtypes": [],
                                         "head_dims": [], "features": [], "backward": False, "cores": 1, "expected": {}}, **more)))
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": at("site"), "ROCM_HOME": at("rocm"), "GPU_ARCHS": "gfx942", "LC_ALL": "C.UTF-8"}
    out = subprocess.run([sys.executable, os.path.join(ROOT, "recipes/build.py"), at("job.json")], env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, universal_newlines=True).stdout
    told = {}
    for line in out.splitlines():
        if line.startswith("fainstall {"):
            told.update(json.loads(line[10:]))
    return told, out, lambda *parts: at("source", *parts)


def a_profile_keeps_what_its_words_say():
    # masked or not, ALiBi, dropout: 8 of each; forward 2 paddings, backward 8 and deterministic or not, split 4 and paged or not
    training = {"bwd": 128, "bwd_dot_do_o": 4, "bwd_convert_dq": 8, "fwd": 16, "fwd_appendkv": 12, "fwd_splitkv": 32, "fwd_splitkv_combine": 8}
    assert chosen("2.8.3", profile="training") == training, chosen("2.8.3", profile="training")
    training["fwd_splitkv"] = 16
    assert chosen("2.7.4", profile="training") == training, chosen("2.7.4", profile="training")
    for release in ("2.7.4", "2.8.3"):
        assert chosen(release, profile="inference", features=["none"]) == {"fwd": 4}
        assert chosen(release, profile="training", features=["dropout"])["bwd"] == 64
        assert chosen(release, profile="full") == chosen(release, profile="custom", backward=True, entries="bool has_lse = any;\ntrue, // has_logits_soft_cap")


def a_head_dim_is_served_by_the_next_larger_one():
    assert chosen("2.8.3", profile="inference", head_dims=["96"]) == chosen("2.8.3", profile="inference", head_dims=["128"])
    assert chosen("2.8.3", profile="inference", head_dims=["40", "128"], features=["none"]) == {"fwd": 8}
    for job, text in ((dict(head_dims=["192"]), "no head dim 192; it has 64, 128"), (dict(dtypes=["fp16"]), "no dtype fp16; it has bf16")):
        try:
            chosen("2.8.3", profile="inference", **job)
        except units.Refused as e:
            assert text in str(e), e
        else:
            raise AssertionError(text)


def a_kernel_that_no_call_asks_for_is_left_out_and_kept_where_one_does():
    assert chosen("2.8.3", profile="inference")["fwd"] == 16
    assert chosen("2.8.3", profile="inference", entries=ENTRIES.replace("false,", "true, "))["fwd"] == 24
    assert chosen("2.8.3", profile="inference", entries=ENTRIES + "bool has_lse = return_lse;")["fwd"] == 32


def a_kernel_of_an_unknown_name_gets_no_profile():
    try:
        ck.choose(units.Profile({"profile": "training"}), ["fmha_fwd_v4_something"], ENTRIES)
    except units.Refused as e:
        assert "fmha_fwd_v4_something" in str(e) and e.step == "build all of it: --profile full"
    else:
        raise AssertionError


def full_is_what_upstream_has():
    told, out, source = build()
    assert told["wheel"].endswith("flash_attn-2.8.3+fa.ck.full.gfx942.rocm64.torch29-py3-none-any.whl"), out
    assert "real torch" not in out and "ASKED --offload-arch=gfx942\n" in out, out
    kernels = [n for n in names("2.8.3") if n.startswith(("fmha_fwd_d", "fmha_bwd"))]
    assert sorted(told["units"]) == sorted(kernels + ["mha_fwd", "fmha_fwd_api", "fmha_bwd_api"])
    assert units.read(source("csrc/flash_attn_ck/mha_fwd.cu")) == ENTRY
    record = json.loads(units.read(source("fainstall.json")))
    assert record["back_end"] == "ck" and record["torch_hip"] == "6.4.43482-0f2d60242" and record["hipcc"].startswith("HIP version: 6.4"), record


def a_profile_is_chosen_in_generate_and_named_where_a_call_fails():
    told, out, source = build("inference", features=["none"])
    kept = ["fmha_fwd_d128_bf16_batch_tile_qr_async_vr_%s_nlogits_nbias_%s_lse_ndropout_nskip_nsquant" % (pad, m)
            for pad in ("psddv", "psskddv") for m in ("mask", "nmask")]
    assert told["profile"] == "ck.bf16.d128.fwd.nodropout.noalibi.nosplit", told
    assert sorted(told["units"]) == sorted(kept + ["mha_fwd", "fmha_fwd_api", "fmha_bwd_api"]), told["units"]
    assert units.read(source("build/fmha_fwd_api.cpp")).split()[1:] == kept
    assert units.read(source("build/fmha_bwd_api.cpp")).split()[1:] == []
    entry = units.read(source("csrc/flash_attn_ck/mha_fwd.cu"))
    assert '"invalid argument for fmha_fwd: flash-attn was built without a kernel for this call; profile: inference (bf16; head dim 128; forward only; features none)' in entry
    assert "--route ck --profile full" in entry and units.read(source("csrc/flash_attn_ck/mha_fwd.cpp")) == ENTRY


def a_kernel_of_another_profile_is_not_compiled_again():
    told, out, source = build("inference", features=["none"], before=["fmha_fwd_d32_old.cpp", "fmha_fwd_d32_old.cu", "fmha_fwd_d32_old.hip"])
    assert not [u for u in told["units"] if "old" in u], told["units"]
    assert os.path.exists(source("build/fmha_fwd_d32_old.hip"))


def a_generator_started_by_os_system_is_narrowed_and_its_end_is_asked():
    """As up to 2.7.3."""
    old = SETUP.replace('subprocess.run([sys.executable, "ck/01_fmha/generate.py", "-d", d, "--output_dir", "build", "--receipt", "2"], check=True)',
                        'os.system(f"{sys.executable} ck/01_fmha/generate.py -d {d} --output_dir build --receipt 2")')
    assert old != SETUP
    told, out, _ = build("inference", features=["none"], setup=old)
    assert len(told["units"]) == 7, told
    told, out, _ = build(setup=old.replace("-d {d}", "-d {d}x"))
    assert "wheel" not in told and "generate.py" in told["error"], told


def nothing_is_fetched_in_the_middle():
    told, out, _ = build(git=True)
    assert "wheel" in told, out
    told, out, source = build("inference", head_dims=["512"])
    assert "no head dim 512" in told["error"], out


def a_hipcc_that_says_no_version():
    told, out, _ = build(said="perl: not found")
    assert "says no release" in told["error"], out


with tempfile.TemporaryDirectory(prefix="fa-ck-test-") as BASE:
    checks.run_all(globals(), ("put", "build", "names", "chosen"))
