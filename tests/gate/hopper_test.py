"""profile_hopper.py on a folder hopper/ of a few lines, the generated C++ compiled and run; and on real ones where FLASH_ATTN_HOPPER
names folders."""

import os
import re
import subprocess
import sys
import tempfile

import checks

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "recipes"))
import profile_hopper as hopper  # noqa: E402
import profile_units as units  # noqa: E402

TYPES = {"bf16": "cutlass::bfloat16_t", "fp16": "cutlass::half_t", "e4m3": "cutlass::float_e4m3_t"}
FWD = "template void run_mha_fwd_<%s, %s, %s, %s, %s, false, %s, false>(Flash_fwd_params &params, cudaStream_t stream);\n"
BWD = ("template<>\nvoid run_mha_bwd_<%s, %s, %s, %s>(Flash_bwd_params &params, cudaStream_t stream) {\n"
       "    run_mha_bwd_hdim128<90, cutlass::bfloat16_t, %s>(params, stream);\n}\n")
FLASH = """#pragma once
#include <cstddef>
#include <cutlass/numeric_types.h>
struct Flash_fwd_params { int d; }; struct Flash_bwd_params { int d; bool is_causal, is_local; int *varlen; int h, h_k; };
template <int Arch, typename T, int D, int DV, bool Split, bool Paged, bool Softcap, bool Pack> void run_mha_fwd_(Flash_fwd_params &params, cudaStream_t stream);
template <int Arch, typename T, int D, bool Softcap> void run_mha_bwd_(Flash_bwd_params &params, cudaStream_t stream);
"""
ENTRY = """#include "flash.h"
#include "check.h"
#include <cstring>
#include <cstdio>
int main(int argc, char **argv) {
  Flash_fwd_params p{0};
  try {
    if (!strcmp(argv[1], "d64")) run_mha_fwd_<90, cutlass::bfloat16_t, 64, 64, false, false, false, false>(p, nullptr);
    if (!strcmp(argv[1], "d64v512")) run_mha_fwd_<90, cutlass::bfloat16_t, 64, 512, false, false, false, false>(p, nullptr);
    if (!strcmp(argv[1], "sm80")) run_mha_fwd_<80, cutlass::bfloat16_t, 128, 128, false, false, false, false>(p, nullptr);
    STD_TORCH_CHECK(strcmp(argv[1], "local"), "This flash attention build does not support local attention.");
    STD_TORCH_CHECK(strcmp(argv[1], "other"), "head_size should be a multiple of ", 8);
    STD_TORCH_CHECK(strcmp(argv[1], "silent"));
  } catch (const std::runtime_error &e) { printf("%s", e.what()); }
}
"""


SWITCHES = """#pragma once
#define BOOL_SWITCH(COND, NAME, ...) [&] { if (COND) { constexpr static bool NAME = true; return __VA_ARGS__(); } else { constexpr static bool NAME = false; return __VA_ARGS__(); } }()
#define VARLEN_SWITCH BOOL_SWITCH
#define CAUSAL_LOCAL_SWITCH(C, L, CN, LN, ...) [&] { if (C) { constexpr static bool CN = true; constexpr static bool LN = false; return __VA_ARGS__(); } \
  else if (L) { constexpr static bool CN = false; constexpr static bool LN = true; return __VA_ARGS__(); } \
  else { constexpr static bool CN = false; constexpr static bool LN = false; return __VA_ARGS__(); } }()
"""
# As upstream's: a function between that is a template of neither mask nor heads.
LAUNCH = """#pragma once
#include "static_switch.h"
#include "flash.h"
#include <cstdio>
template <int Arch, typename T, int D, bool Softcap, bool C, bool L> void run_mha_bwd_dispatch(Flash_bwd_params &params, cudaStream_t stream) {
  VARLEN_SWITCH(params.varlen != nullptr, Varlen, [&] { BOOL_SWITCH(params.h != params.h_k, GQA, [&] {
    printf("%d%d%d%d%d ", C, L, Varlen, GQA, Softcap); }); });
}
template <int Arch, typename T, bool Softcap> void run_mha_bwd_hdim128(Flash_bwd_params &params, cudaStream_t stream) {
  CAUSAL_LOCAL_SWITCH(params.is_causal, params.is_local, Is_causal, Is_local, [&] {
    run_mha_bwd_dispatch<Arch, T, 128, Softcap, Is_causal, Is_local>(params, stream); });
}
"""
PARTS_MAIN = """#include "flash.h"
#include <cstdio>
int main() {
  int one = 1;
  for (int i = 0; i < 24; i++) {
    Flash_bwd_params p{0, i % 3 == 1, i % 3 == 2, (i / 3) % 2 ? &one : nullptr, 8, (i / 6) % 2 ? 8 : 2};
    if (i / 12) run_mha_bwd_<90, cutlass::bfloat16_t, 128, true>(p, nullptr);
    else run_mha_bwd_<90, cutlass::bfloat16_t, 128, false>(p, nullptr);
  }
}
"""


def tree(grouped=False):
    """bf16 and e4m3, head dims 64 and 128, with and without softcap, 64 with a V of 512, sm_80 beside sm_90."""
    folder = os.path.join(tempfile.mkdtemp(prefix="fa-hopper-test-", dir=BASE), "hopper")
    os.makedirs(os.path.join(folder, "instantiations"))
    os.makedirs(os.path.join(folder, "cutlass"))

    def put(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
        return name

    put("__init__.py", '__version__ = "3.0.0.b1"\n')
    put("flash.h", FLASH)
    put("static_switch.h", SWITCHES)
    put("flash_bwd_launch_template.h", LAUNCH)
    put("cuda_runtime.h", "#pragma once\ntypedef void *cudaStream_t;\n")
    put("cutlass/numeric_types.h", "#pragma once\n#include <cuda_runtime.h>\nnamespace cutlass { struct bfloat16_t {}; struct half_t {}; struct float_e4m3_t {}; }\n")
    put("check.h", '#pragma once\n#include <stdexcept>\n#define STD_TORCH_CHECK(cond, ...) if (!(cond)) throw std::runtime_error("upstream")\n')
    sources = [put("flash_api_stable.cpp", ENTRY), put("flash_prepare_scheduler.cu", ""), put("flash_fwd_combine.cu", "")]
    for word, ctype in TYPES.items():
        for dim, dim_v in (("64", "64"), ("128", "128"), ("64", "512")):
            dims = dim if dim == dim_v else "%s_%s" % (dim, dim_v)
            for softcap in ("", "_softcap"):
                sources.append(put("instantiations/flash_fwd_hdim%s_%s%s_sm90.cu" % (dims, word, softcap), '#include "flash.h"\n' +
                                   FWD % ("90", ctype, dim, dim_v, "false", str(bool(softcap)).lower())))
    for softcap in ("", "_softcap"):
        put("instantiations/flash_bwd_hdim128_bf16%s_sm90.cu" % softcap, '#include "flash_bwd_launch_template.h"\n' + BWD % (
            "90", TYPES["bf16"], "128", str(bool(softcap)).lower(), str(bool(softcap)).lower()))
    sources.append(put("instantiations/flash_bwd_hdim128_bf16_softcapall_sm90.cu",
                       '#include "flash_bwd_hdim128_bf16_sm90.cu"\n#include "flash_bwd_hdim128_bf16_softcap_sm90.cu"'))
    sources.append(put("instantiations/flash_fwd_hdim128_bf16_sm80.cu", "".join(
        FWD % (arch, TYPES["bf16"], "128", "128", "false", "false") for arch in ("80", "86"))))
    if grouped:  # as 3.0.0b1 has them
        single = [s for s in sources if "_hdim64_bf16_sm90" in s or "_hdim128_bf16_sm90" in s]
        sources = [s for s in sources if s not in single] + [put(
            "instantiations/flash_fwd_hdimall_bf16_sm90.cu", "".join('#include "%s"\n' % os.path.basename(s) for s in single))]
    return folder, sources


def work(grouped=False, **job):
    folder, sources = tree(grouped)
    job = dict({"profile": "training", "archs": ["90"], "dtypes": ["bf16"], "head_dims": ["128"], "features": [], "version": "3.0.0b1"}, **job)
    job.update(source=folder, work=os.path.join(folder, "build/x"))
    for row in hopper.TABLE["switches"].values():
        os.environ.pop(row["set"], None)
    hopper.prepare(job)
    off = set(hopper.profile_of(job).off()) if job["profile"] != "full" else set()
    return hopper.Work(job, [s for s in sources if not ("softcap" in off and "_softcap" in s and "softcapall" not in s)], [folder])


def names(w):
    return sorted(units.unit_name(s) for s in w.sources)


def run(w, *args):
    """The generated C++ files, compiled, linked and run."""
    folder = w.folder
    cpp = [s for s in w.sources if s.endswith(".cpp")]
    kept = os.path.join(folder, "kept.cpp")
    with open(kept, "w", encoding="utf-8") as f:  # what the kernels kept would define
        f.write('#include <cutlass/numeric_types.h>\n#include "flash.h"\n')
        for k in w.kept:
            f.write("template<> void %s<%s>(%s) {}\n" % (k.function, k.arguments, k.parameters))
    out = os.path.join(folder, "run")
    subprocess.run(["c++", "-std=c++17", "-I", folder, "-o", out, kept] + cpp, check=True)
    return subprocess.run([out] + list(args), stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout


def refusal(**job):
    try:
        work(**job)
    except units.Refused as e:
        return "%s; %s" % (e, e.step)
    raise AssertionError("was not refused")


# ---- checks


def only_what_the_profile_holds_is_compiled():
    assert names(work()) == ["flash_api_stable", "flash_bwd_hdim128_bf16_sm90", "flash_bwd_hdim128_bf16_softcap_sm90",
                             "flash_fwd_combine_sm90", "flash_fwd_hdim128_bf16_sm90", "flash_fwd_hdim128_bf16_softcap_sm90",
                             "flash_prepare_scheduler_sm90", "profile"], names(work())
    lean = work(profile="inference", features=["none"])
    assert [n for n in names(lean) if "hdim" in n] == ["flash_fwd_hdim128_bf16_sm90"], names(lean)


def a_unit_that_only_includes_others_is_those_that_are_wanted():
    assert "flash_fwd_hdim128_bf16_sm90" in names(work(grouped=True))
    assert not [n for n in names(work(grouped=True)) if "hdim64" in n or "all" in n]
    full = names(work(grouped=True, profile="full", dtypes=[], head_dims=[]))
    assert "flash_fwd_hdim64_bf16_sm90" in full and "flash_bwd_hdim128_bf16_softcap_sm90" in full, full


def all_of_it_is_all_for_these_architectures():
    full = names(work(profile="full", dtypes=[], head_dims=[]))
    assert "flash_fwd_hdim64_512_e4m3_sm90" in full and not [n for n in full if n.endswith("sm80")], full
    both = work(profile="full", dtypes=[], head_dims=[], archs=["80", "90"])
    assert "flash_fwd_hdim128_bf16_sm80" in names(both) and "flash_fwd_combine" in names(both), names(both)


def switches_are_upstreams_own():
    w = work(profile="inference", features=["local"])
    have = sorted(k for k in os.environ if k.startswith("FLASH_ATTENTION_DISABLE_"))
    assert have == sorted("FLASH_ATTENTION_DISABLE_" + f for f in (
        "APPENDKV", "BACKWARD", "FP16", "FP8", "PACKGQA", "PAGEDKV", "SOFTCAP", "SPLIT", "VARLEN")), have
    assert sorted(w.record["defines"]) == have
    work(profile="full", dtypes=[], head_dims=[])
    assert not [k for k in os.environ if k.startswith("FLASH_ATTENTION_DISABLE_")]


def kernels_that_read_torchs_headers_are_not_kept_for_another_torch():
    w = work()
    assert w.torch_free and w.nvcc == ["-DFA_SHADOW"] and w.record["torch_free_kernels"]
    with open(os.path.join(w.folder, "utils.h"), "w", encoding="utf-8") as f:
        f.write("#include <c10/cuda/CUDAException.h>\n")
    w = hopper.Work(w.job, [os.path.relpath(s, w.folder) for s in w.kept_sources] + ["flash_api_stable.cpp"], [])
    assert not w.torch_free and not w.nvcc


def combos(w, units_):
    """What main() of these kernels prints for every mixture of what is decided at run time."""
    put = os.path.join(w.folder, "parts_main.cpp")
    with open(put, "w", encoding="utf-8") as f:
        f.write(PARTS_MAIN)
    out = os.path.join(w.folder, "parts")
    glue = [s for s in w.sources if s.endswith("profile.cpp")] if any(".1_" in u for u in units_) else []
    kept = os.path.join(w.folder, "fwd.cpp")
    with open(kept, "w", encoding="utf-8") as f:
        f.write('#include "flash.h"\n')
    subprocess.run(["c++", "-std=c++17", "-I", w.folder, "-I", os.path.join(w.folder, "instantiations"), "-o", out, put, kept] + glue +
                   [a for u in units_ for a in ("-x", "c++", u)], check=True)
    return subprocess.run([out], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout.split()


def parts_compute_what_the_whole_does():
    expected = {"flash_bwd_hdim128_bf16_sm90": [900, 8000], "flash_bwd_hdim128_bf16_softcap_sm90": [900, 8000]}
    whole = work(cores=1, expected=expected)
    want = combos(whole, [s for s in whole.sources if "bwd" in s])
    assert len(set(want)) == 24, want
    for cores, parts in ((6, 3), (64, 6)):
        w = work(cores=cores, expected=expected)
        bwd = [s for s in w.sources if "bwd" in s]
        assert len(bwd) == 2 * parts, (cores, bwd)
        assert combos(w, bwd) == want, (cores, combos(w, bwd), want)
        assert w.record["divided"] == 2 and all(s.endswith("_sm90.cu") for s in bwd)
        assert w.expect[units.unit_name(bwd[0])][0] < 900 * 0.8
    w = work(cores=2, profile="inference", features=["none"])  # beside the scheduler's unit a second core is not idle
    assert not w.record["divided"], names(w)
    w = work(cores=64, expected=expected, features=["softcap", "varlen"])
    assert len([s for s in w.sources if "bwd" in s]) == 8, names(w)
    assert not [s for s in work(profile="full", cores=64, expected=expected).sources if ".1_" in s]


def labels_and_commands():
    p = work(profile="inference", features=["none"]).profile
    assert p.label() == ["bf16", "d128", "fwd", "bare"], p.label()
    p = work(features=["varlen", "split", "paged", "append", "packgqa", "diffv"]).profile
    assert p.label() == ["bf16", "d128", "lean"], p.label()
    p = work(features=["softcap", "local", "varlen", "paged", "append", "packgqa", "diffv"]).profile
    assert p.label() == ["bf16", "d128", "nosplit"], p.label()
    assert work().profile.label() == ["bf16", "d128"]
    assert work(profile="full").profile.label() == ["full"]
    assert p.command("fp16", "64").startswith("fainstall install --rebuild --line fa3 --route source --profile training"), p.command()


def what_was_left_out_says_so_when_it_is_called():
    w = work(profile="inference", features=["none"])
    said = run(w, "d64")
    assert said == ("flash-attn-3 was built without bf16 head dim 64 forward; profile: inference (bf16; head dim 128; forward only; "
                    "features none). To get it: fainstall install --rebuild --line fa3 --route source --profile inference "
                    "--dtype bf16 --head-dim 64,128 --features none"), said
    said = run(w, "d64v512")
    assert "without bf16 head dim 64 with V head dim 512 forward" in said and said.endswith("--features diffv"), said
    said = run(w, "sm80")
    assert said == "flash-attn-3 was built without sm_80; it holds sm_90", said


def upstreams_refusals_name_the_profile_and_the_command():
    w = work(features=["none"])
    said = run(w, "local")
    assert said == ("This flash attention build does not support local attention. Built as profile: training (bf16; head dim 128; "
                    "forward and backward; features none). To get it: fainstall install --rebuild --line fa3 --route source "
                    "--profile training --dtype bf16 --head-dim 128 --features local"), said
    assert run(w, "other") == "head_size should be a multiple of 8"
    assert run(w, "silent").startswith("Expected strcmp(")
    assert run(w, "nothing") == ""


def what_it_does_not_have_is_refused():
    assert "has no dropout; leave dropout out" in refusal(features=["dropout"])
    assert "has no feature called speed" in refusal(features=["speed"])
    assert "does not compute in fp32" in refusal(dtypes=["fp32"])
    assert "has no head dim 32; it has 64, 128" in refusal(head_dims=["32"])
    assert "leaves no kernel" in refusal(archs=["100"])
    assert "the source is Flash-Attention 3.0.0b1, the plan says 3.0.0; ask for it: --flash-attn 3.0.0b1" in refusal(version="3.0.0")


def every_switch_is_known_to_the_real_source():
    """And every kernel left out has a function; the macros that say nothing are those of the table."""
    for folder in filter(None, os.environ.get("FLASH_ATTN_HOPPER", "").split(":")):
        setup = units.read(os.path.join(folder, "setup.py"))
        entries = "".join(units.read(os.path.join(folder, f)) for f in os.listdir(folder) if f.startswith("flash_api"))
        for word, row in hopper.TABLE["switches"].items():
            assert '"%s"' % row["set"] in setup, row
            assert any(s in entries for s in row["says"]), row
        said = set(re.findall(r'build does not (support [^"]+?)\."', entries)) - {"support dropout"}
        known = {s for row in hopper.TABLE["switches"].values() for s in row["says"]}
        assert said <= known, said - known
        for name in os.listdir(os.path.join(folder, "instantiations")):
            for leaf in hopper.leaves(os.path.join(folder, "instantiations", name)):
                assert hopper.kernels(leaf)


with tempfile.TemporaryDirectory(prefix="fa-hopper-test-") as BASE:
    checks.run_all(globals(), ("tree", "work", "names", "run", "refusal", "combos"))
    os.chdir("/")
