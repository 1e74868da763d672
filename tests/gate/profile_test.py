"""profile_units.py on a release of a few lines (two generations of it), and on real ones where FLASH_ATTN_SOURCES names folders."""

import glob
import os
import sys
import tempfile

import checks

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "recipes"))
import launches  # noqa: E402
import profile_units as units  # noqa: E402

TEMPLATE = """#pragma once
#include <c10/cuda/CUDAException.h>
#include "static_switch.h"
#define DEFINE_FLASH_KERNEL(name, ...) template<typename Kernel_traits, __VA_ARGS__> __global__ void name(const P params)
DEFINE_FLASH_KERNEL(NAME, bool Is_dropout, bool Is_causal) { // } of a remark
  if (true) { compute<Kernel_traits>(params); }
}
template<typename Kernel_traits>
__global__ void flash_side_kernel(const P params, const int n) { side<Kernel_traits>(params); }

template<typename Kernel_traits, bool Is_dropout, bool Is_causal>
void RUN(P &params, cudaStream_t stream) {
  flash_side_kernel<Kernel_traits><<<grid, 128, 0, stream>>>(params, 1);
  SOFTCAP_SWITCH(params.softcap > 0.0, Is_softcap, [&] { EVENK_SWITCH(is_even_K, IsEvenKConst, [&] {
    LOCAL_SWITCH((params.left >= 0 || params.right >= 0) && !Is_causal, Is_local, [&] { ALIBI_SWITCH(params.alibi_slopes_ptr != nullptr, Has_alibi, [&] {MORE
      auto kernel = &NAME<Kernel_traits, Is_dropout && !Is_softcap, Is_causal, Is_local && !Is_causal, Has_alibi, IsEvenKConst && !Has_alibi, Is_softcapARGS>;
      kernel<<<grid, Kernel_traits::kNThreads, smem_size, stream>>>(params);
    }); }); }); });END
}
template<typename T, bool Is_causal>
void run_mha_hdim128(P &params, cudaStream_t stream) {
  DROPOUT_SWITCH(params.p_dropout < 1.f, Is_dropout, [&] {
    if (max_smem_per_block >= 144 * 1024) { run_flash_bwd<Flash_bwd_kernel_traits<Headdim, 64, 128, 8, 2, 4, 2, false, false, T>, Is_dropout, Is_causal>(params, stream); }
    else { run_flash_bwd<Flash_bwd_kernel_traits<Headdim, 64, 64, 8, 4, 2, 2, true, false, T>, Is_dropout, Is_causal>(params, stream); }
  });
}
"""


def template(name, run, more="", arguments="", end=""):
    return (TEMPLATE.replace("NAME", name).replace("RUN", run).replace("MORE", more).replace("ARGS", arguments).replace("END", end))


BACKWARD = template("flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "run_flash_bwd_seqk_parallel")
SPLIT = template("flash_fwd_splitkv_kernel", "run_flash_splitkv_fwd",
                 " BOOL_SWITCH(params.num_splits > 1, Split, [&] { BOOL_SWITCH(params.knew_ptr != nullptr, Append_KV, [&] {", ", Split, Append_KV",
                 " }); });\n  EVENK_SWITCH(is_even_K, IsEvenKConst, [&] { flash_combine_kernel<Kernel_traits, IsEvenKConst><<<grid, 128, 0, stream>>>(params); });")
FORWARD = template("flash_fwd_kernel", "run_flash_fwd") + SPLIT
MACROS = ("DROPOUT", "ALIBI", "UNEVEN_K", "SOFTCAP", "LOCAL")
SWITCHES = "".join("#ifdef FLASHATTENTION_DISABLE_%s\n  #define %s_SWITCH(COND, NAME, ...) [&] { }()\n#endif\n" % (m, m) for m in MACROS)
REFUSALS = "".join("#ifdef FLASHATTENTION_DISABLE_%s\n  TORCH_CHECK(ok, \"no\");\n#endif\n" % m for m in MACROS)
ENTRY = """#include <torch/python.h>
void set_params(P &params, int d) {
REFUSALS}
std::vector<at::Tensor>
mha_fwd(at::Tensor &q) {
  const int head_size_rounded = head_size <= 64 ? round_multiple(head_size, 64) : 128;
  set_params(params, d);
}
std::vector<at::Tensor>
mha_bwd(at::Tensor &q) {
  #ifdef FLASHATTENTION_DISABLE_BACKWARD
    TORCH_CHECK(false, "This flash attention build does not support backward.");
  #endif
  set_params(params, d);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("fwd", &FLASH_NAMESPACE::mha_fwd, "Forward"); m.def("bwd", &mha_bwd, "Backward"); }
"""


def release(folder, spaced=True):
    """A source tree with 2 dtypes, 2 head dims; without namespaces and switches as in the first releases."""
    src = os.path.join(folder, "csrc/flash_attn/src")
    os.makedirs(src)

    def put(name, text):
        with open(os.path.join(folder, "csrc/flash_attn", name), "w", encoding="utf-8") as f:
            f.write(text)

    put("flash_api.cpp", ENTRY.replace("REFUSALS", REFUSALS) if spaced else "#include <torch/python.h>\n")
    put("src/static_switch.h", SWITCHES if spaced else "")
    put("src/flash.h", "#include <ATen/cuda/CUDAGeneratorImpl.h>\nstruct P { void *knew_ptr; int *block_table; int * cache_batch_idx; };\n")
    put("src/flash_bwd_launch_template.h", BACKWARD)
    put("src/flash_fwd_launch_template.h", FORWARD)
    if spaced:
        put("src/namespace_config.h", "")
    for kind, function in (("fwd", "run_mha_fwd_"), ("bwd", "run_mha_bwd_"), ("fwd_split", "run_mha_fwd_splitkv_dispatch")):
        for dim in (64, 128):
            for word, ctype in (("fp16", "half_t"), ("bf16", "bfloat16_t")):
                arguments = "cutlass::%s, %d%s" % (ctype, dim, ", false" if spaced else "")
                parameters = "Flash_%s_params &params, cudaStream_t stream" % ("bwd" if kind == "bwd" else "fwd")
                head = "template void" if kind == "fwd_split" else "template<>\nvoid"
                body = ";" if kind == "fwd_split" else " { run(); }"
                put("src/flash_%s_hdim%d_%s_sm80.cu" % (kind, dim, word),
                    '// (c)\n#include "flash_%s_launch_template.h"\n%s%s %s<%s>(%s)%s\n%s' % (
                        "bwd" if kind == "bwd" else "fwd", "namespace FLASH_NAMESPACE {\n" if spaced else "", head, function,
                        arguments, parameters, body, "}" if spaced else ""))


def torch(folder, word="uint64_t"):
    raw = os.path.join(folder, "torch/include/ATen/cuda/detail")
    os.makedirs(raw)
    with open(os.path.join(raw, "PhiloxCudaStateRaw.cuh"), "w", encoding="utf-8") as f:
        f.write("%s offset_intragraph_ = 0;" % word)
    return os.path.join(folder, "torch")


def work(folder, **job):
    job.setdefault("archs", ["90"])
    job.setdefault("cores", 1)
    job.update(source=folder, work=os.path.join(folder, "build/x"))
    job.setdefault("torch_folder", os.path.join(folder, "torch"))
    os.chdir(folder)
    return units.Work(job, ["csrc/flash_attn/flash_api.cpp"] + sorted(glob.glob("csrc/flash_attn/src/*.cu")), [])


def names(w):
    return sorted(units.unit_name(s) for s in w.sources)


def text(w, name):
    return units.read(next(s for s in w.sources if units.unit_name(s) == name))


def fresh(**kw):
    folder = tempfile.mkdtemp(prefix="fa-profile-test-", dir=BASE)
    release(folder, **kw)
    torch(folder)
    return folder


def full_is_untouched():
    w = work(fresh(), profile="full")
    assert len(w.sources) == 13 and not w.defines and not w.nvcc and not w.include_dirs


def inference_is_forward_only():
    w = work(fresh(), profile="inference")
    assert names(w) == ["flash_api", "flash_fwd_hdim128_bf16_sm80.1", "flash_fwd_launch", "flash_fwd_split_hdim128_bf16_sm80.1", "profile"], names(w)
    assert w.defines == ["-DFLASHATTENTION_DISABLE_BACKWARD"]
    glue = text(w, "profile")
    assert glue.count("template<> void run_mha_bwd_<") == 4 and "without bf16 head dim 64 forward" in glue
    assert "fainstall install --rebuild --route source --profile training --dtype bf16 --head-dim 128" in glue
    assert "generated/flash_api.cpp" in " ".join(w.sources) and "--profile training" in text(w, "flash_api")


def features_reach_both_compilers_and_the_entry_file():
    w = work(fresh(), profile="training", features=["split", "unevenk"])
    assert [d[len("-DFLASHATTENTION_DISABLE_"):] for d in w.defines] == ["DROPOUT", "ALIBI", "SOFTCAP", "LOCAL"]
    assert "--features alibi" not in text(w, "flash_api") and "split,unevenk,alibi" in text(w, "flash_api")


def changed(folder, path, old, new):
    path = os.path.join(folder, "csrc/flash_attn", path)
    before = units.read(path)
    assert old in before, old
    with open(path, "w", encoding="utf-8") as f:
        f.write(before.replace(old, new))
    return folder


def defines(folder):
    w = work(folder, profile="training", features=["none"])
    return sorted(d[len("-DFLASHATTENTION_DISABLE_"):] for d in w.defines), w.record["features"], ".".join(w.profile.label())


def a_switch_that_one_side_ignores_is_not_given():
    """Kernels without a feature under an entry file that lets it pass would give wrong numbers and no word."""
    everything = ["ALIBI", "DROPOUT", "LOCAL", "SOFTCAP", "UNEVEN_K"]
    assert defines(fresh()) == (everything, [], "bf16.d128.lean.nounevenk.nosplit")
    for path, old, new in (("flash_api.cpp", "#ifdef FLASHATTENTION_DISABLE_ALIBI\n  TORCH_CHECK(ok", "#ifdef FLASHATTENTION_DISABLE_ALIBI\n  log(ok"),
                           ("src/static_switch.h", "#define ALIBI_SWITCH", "// #define ALIBI_SWITCH")):
        off, held, label = defines(changed(fresh(), path, old, new))
        assert off == ["DROPOUT", "LOCAL", "SOFTCAP", "UNEVEN_K"] and held == ["alibi"], (path, off, held)
        assert label == "bf16.d128.nodropout.nosoftcap.nolocal.nounevenk.nosplit", label


def a_function_that_python_calls_past_the_check_keeps_every_feature():
    folder = changed(fresh(), "flash_api.cpp", "  #endif\n  set_params(params, d);", "  #endif")
    assert defines(folder)[:2] == ([], ["dropout", "alibi", "softcap", "local", "unevenk"])


def the_record_holds_the_head_dims_that_the_release_serves():
    record = work(fresh(), profile="inference").record
    assert (record["head_dims"], record["kernel_dims"], record["even_dims"]) == (["128"], [64, 128], [64, 128]), record


def uneven_k_stays_where_a_rounded_head_dim_has_no_kernel():
    for rule in ("round_multiple(head_size, 32)", "head_size <= 96 ? round_multiple(head_size, 32) : 128", "round_multiple(head_size, head_size <= 64 ? 64 : 128)", "rounded_somehow(head_size)"):
        folder = changed(fresh(), "flash_api.cpp", "head_size <= 64 ? round_multiple(head_size, 64) : 128", rule)
        assert defines(folder)[1] == ["unevenk"], rule


def without_split_ordinary_calls_still_work():
    glue = text(work(fresh(), profile="inference", features=["none"]), "profile")
    assert "params.knew_ptr == nullptr && params.block_table == nullptr && params.cache_batch_idx == nullptr" in glue
    assert "run_mha_fwd_<cutlass::bfloat16_t, 128, false>(params, stream); return;" in glue


def a_dead_branch_is_left_out_only_where_no_card_takes_it():
    dead = "run_flash_bwd<Flash_bwd_kernel_traits<128, 64, 64, 8, 4, 2, 2, true, false, cutlass::bfloat16_t>, true, false>(Flash_bwd_params &, cudaStream_t ) {"
    w = work(fresh(), profile="training")
    assert dead + "  }" in text(w, "flash_bwd_hdim128_bf16_sm80.1") and dead + " fa_wrong_part(" in text(w, "flash_bwd_launch")
    w = work(fresh(), profile="training", archs=["80", "90"])
    assert dead not in text(w, "flash_bwd_hdim128_bf16_sm80.1") + text(w, "flash_bwd_launch")


def a_launcher_starts_kernels_that_it_does_not_hold():
    launcher = text(work(fresh(), profile="training", nvcc="13.0.88"), "flash_fwd_launch")
    assert "<<<" not in launcher and "compute<" not in launcher and "side<" not in launcher
    assert "bool Is_dropout, bool Is_causal);" in launcher and "__global__ void flash_side_kernel(const P params, const int n);" in launcher
    assert "fa_launch(kernel, grid, Kernel_traits::kNThreads, smem_size, stream, params);" in launcher
    assert "fa_launch(flash_side_kernel<Kernel_traits>, grid, 128, 0, stream, params, 1);" in launcher
    assert "run_mha_fwd_<cutlass::bfloat16_t, 128, false>" in launcher and "splitkv_dispatch<cutlass::bfloat16_t, 128, false>" in launcher


def newer_compilers_are_told_that_kernels_lie_elsewhere():
    flag = "-static-global-template-stub=false"
    assert flag in work(fresh(), profile="training", nvcc="13.0.88").nvcc and flag not in work(fresh(), profile="training", nvcc="12.6.20").nvcc


def a_template_of_another_form_is_compiled_as_it_is():
    for old, new in (("kernel<<<grid, Kernel_traits::kNThreads, smem_size, stream>>>(params)", "(*kernel)<<<grid, 128>>>(params)"), ("<<<", "<< <")):
        w = work(changed(fresh(), "src/flash_bwd_launch_template.h", old, new), profile="training", cores=16)
        assert "flash_bwd_hdim128_bf16_sm80" in names(w) and "flash_bwd_launch" not in names(w), names(w)
        assert "flash_fwd_launch" in names(w)


def long_units_are_divided_where_cores_would_wait():
    w = work(fresh(), profile="training", cores=32, expected={})
    parts = [n for n in names(w) if n.startswith("flash_bwd_hdim128_bf16_sm80.")]
    assert len(parts) > 1 and set(w.expect) == set(names(w)), names(w)
    assert sum("flash_side_kernel<Kernel_traits><<<" in units.read(os.path.join(w.generated, "device", h)) for h in
               ("flash_bwd_launch_template.first.h", "flash_bwd_launch_template.more.h")) == 1
    assert len(work(fresh(), profile="training", cores=2).sources) == 7  # three units, two launchers, two C++ files


def the_parts_together_hold_each_kernel_once():
    for kind, held in (("fwd", FORWARD), ("fwd_split", FORWARD), ("bwd", BACKWARD)):
        for off in ({}, {"Is_dropout": False, "Has_alibi": False}, {"IsEvenKConst": True}):
            k = launches.Kernels(held, kind, "128", False, off)
            rows = [{}]
            for _ in range(8):
                rows.sort(key=lambda row: -len(k.held(row)))
                rows = k.divided(rows[0]) + rows[1:] if k.divided(rows[0]) else rows
            assert len(rows) > 4 and set().union(*(k.held(row) for row in rows)) == k.held({}), (kind, off, rows)
            assert sum(len(k.held(row)) for row in rows) <= 1.2 * k.count(), (kind, off, rows)


def kernels_are_counted_by_their_template_arguments():
    count = lambda text, causal, **off: launches.Kernels(text, "bwd", "128", causal, off).count()  # noqa: E731
    assert count(BACKWARD, False) == 18 and count(BACKWARD, True) == 9  # 3 of softcap and dropout, 2 of local, 3 of alibi and even K
    assert count(BACKWARD, False, Is_dropout=False) == 12
    assert count(BACKWARD.replace("Is_local && !Is_causal", "Unheard_of"), False) == 0


def a_constant_that_decides_nothing_is_settled_in_each_part():
    text = FORWARD.replace("[&] {\n      auto kernel = &flash_fwd_kernel", "[&] { BOOL_SWITCH(return_softmax, Returns, [&] {\n      auto kernel = &flash_fwd_kernel")
    text = text.replace("IsEvenKConst && !Has_alibi", "IsEvenKConst && !Has_alibi && !Returns")
    k = launches.Kernels(text, "fwd", "128", False, {"Is_dropout": False, "Has_alibi": False})
    assert k.always == {"Returns": False} and k.count() == 8, (k.always, k.count())
    off = {"Is_dropout": False, "Has_alibi": False, "IsEvenKConst": True}  # now Returns alone leads to the kernels that are not even
    assert launches.Kernels(text, "fwd", "128", False, off).always == {}


def a_constant_that_other_kernels_need_is_not_settled():
    assert "IsEvenKConst" not in launches.Kernels(SPLIT, "fwd_split", "128", False, {}).constants
    assert "IsEvenKConst" in launches.Kernels(BACKWARD, "bwd", "128", False, {}).constants


def a_settled_switch_compiles_one_side():
    macros = " ".join(launches.Template(BACKWARD).settled({"Is_dropout": True}))
    assert "#define DROPOUT_SWITCH(COND, NAME, ...) FA_ONLY(COND, true" in macros and "#define FA_SWITCH_Is_softcap(COND, NAME, ...) FA_BOTH" in macros


def the_first_releases_have_no_namespace_and_no_switches():
    w = work(fresh(spaced=False), profile="inference", features=["none"], cores=16)
    assert not w.defines and "namespace" not in text(w, "flash_fwd_launch")
    assert w.record["features"] == ["dropout", "alibi", "softcap", "local", "unevenk"]  # what cannot be left out is there
    glue = text(w, "profile")
    assert "template<> void run_mha_bwd_<cutlass::half_t, 64>(Flash_bwd_params &params, cudaStream_t stream) {" in glue
    assert "FLASH_NAMESPACE" not in glue


def shadow_headers_follow_torch():
    folder = fresh()
    w = work(folder, profile="training")
    assert "-DFA_INTRAGRAPH=uint64_t" in w.nvcc and w.include_dirs
    with open(os.path.join(folder, "csrc/flash_attn/src/flash.h"), "a", encoding="utf-8") as f:
        f.write("#include <ATen/core/Other.h>\n")
    assert not work(folder, profile="training").nvcc


def kernels_keep_their_standard_where_only_torch_wants_another():
    os.environ["FAINSTALL_KERNEL_CXX"] = "17"
    try:
        folder, flags = fresh(), ["-O3", "-std=c++20", "-gencode", "arch=compute_80,code=sm_80"]
        assert work(folder, profile="training").nvcc_flags(flags)[:2] == ["-O3", "-std=c++17"]
        assert work(folder, profile="training", shadow=False).nvcc_flags(flags)[1] == "-std=c++20"
    finally:
        del os.environ["FAINSTALL_KERNEL_CXX"]


def a_profile_that_leaves_nothing_or_asks_too_much_is_refused():
    for job, words in (({"profile": "custom", "dtypes": ["fp8"]}, "no dtype fp8"), ({"profile": "custom", "head_dims": ["80"]}, "no head dim 80")):
        try:
            work(fresh(), **job)
        except units.Refused as e:
            assert words in str(e), e
        else:
            raise AssertionError("not refused: %s" % job)


def labels_tell_builds_apart():
    p = lambda **job: ".".join(units.Profile(job).label())  # noqa: E731
    assert p(profile="full") == "full"
    assert p(profile="training") == "bf16.d128"
    assert p(profile="inference", features=["split", "unevenk"]) == "bf16.d128.fwd.lean"
    assert p(profile="custom", dtypes=["fp16", "bf16"], head_dims=["128", "64"], backward=True,
             features=["alibi", "unevenk", "split", "softcap", "local"]) == "bf16.fp16.d64.d128.nodropout"


def generated_files_keep_their_time():
    folder = fresh()
    w = work(folder, profile="training", cores=16)
    before = {s: os.stat(s).st_mtime_ns for s in w.sources}
    again = work(folder, profile="training", cores=16)
    assert before == {s: os.stat(s).st_mtime_ns for s in again.sources}


def real_releases_have_the_units_they_claim():
    for folder in filter(None, os.environ.get("FLASH_ATTN_SOURCES", "").split(":")):
        work(folder, profile="inference", torch_folder="/nowhere", work=None)


with tempfile.TemporaryDirectory(prefix="fa-profile-test-") as BASE:
    checks.run_all(globals(), ("release", "torch", "work", "names", "text", "fresh", "changed", "defines", "template"))
    os.chdir("/")
