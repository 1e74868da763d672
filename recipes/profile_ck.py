"""The CK build of Flash-Attention 2 (AMD): which of its kernels a profile compiles.

usage: profile_ck.py WANTED.json GENERATE.py ARGUMENT…     in place of `python GENERATE.py ARGUMENT…`, which setup.py runs

generate.py of the composable_kernel writes a .cpp file for each kernel and one file, …_api.cpp, that chooses among them at run time. It asks
fnmatch whether a kernel's name passes --filter, and what does not pass is in neither. Here fnmatch answers for the profile, so a kernel that is
left out leaves no call behind: the choice returns -1 and its caller raises. Names of kernels: fmha_fwd_d128_bf16_batch_…_nlogits_alibi_mask_lse_ndropout_…;
up to 2.7.4 a word for "no" is not written, from 2.8 on it is the word with an n before it."""

import fnmatch
import json
import os
import re
import runpy
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profile_units as units  # noqa: E402

KERNEL = re.compile(r"fmha_(fwd_splitkv_combine|fwd_splitkv|fwd_appendkv|fwd|bwd_dot_do_o|bwd_convert_dq|bwd)_d(\d+)_(fp16|bf16|fp8|bf8|fp32|fp8fp16|fp8bf16)_(\w+)$")
SOURCE = re.compile(r"(^|/)fmha_\w*wd_\w+\.(cu|cpp|hip)$")
ENTRIES = "csrc/flash_attn_ck"
# What the CK kernels have a switch for. Causal and local calls share kernels, and padded ones serve every length.
FEATURES = ("dropout", "alibi", "split")
REFUSED = 3  # exit status; the sentence and the next step lie in WANTED.json.refused
HELD = re.compile(r'"(invalid argument for fmha_\w+)"')


class Kernel:
    """One kernel by its name."""

    def __init__(self, name):
        m = KERNEL.match(name)
        if not m:
            raise units.Refused("%s: not the name of a CK kernel that is known" % name, "build all of it: --profile full")
        self.name, self.kind, self.dim, self.dtype = name, m[1], m[2], m[3]
        self.words = set(m[4].split("_"))
        self.backward = self.kind.startswith("bwd")
        self.split = self.kind.startswith(("fwd_splitkv", "fwd_appendkv"))


def serves(wanted, there):
    """The head dims compiled for those wanted: CK pads to the next one that it has."""
    out = set()
    for dim in wanted:
        larger = [d for d in there if int(d) >= int(dim)]
        if not larger:
            raise units.Refused("the CK back end has no head dim %s; it has %s" % (dim, ", ".join(sorted(there, key=int))), "choose among those")
        out.add(min(larger, key=int))
    return out


def reachable(kernel, entries):
    """False: no call of the entry files asks for it. They pass `false` for the soft cap, and always want the log-sum-exp."""
    if "logits" in kernel.words and not re.search(r"\btrue,?\s*// has_logits_soft_cap", entries):
        return False
    always = re.findall(r"\bhas_lse = (\w+)", entries)
    return kernel.kind != "fwd" or "lse" in kernel.words or not always or set(always) != {"true"}


def keeps(profile, kernel, dims, entries):
    if profile.dtypes and kernel.dtype not in profile.dtypes or dims and kernel.dim not in dims:
        return False
    if kernel.backward and not profile.backward or kernel.split and not profile.keeps_feature("split"):
        return False
    if "dropout" in kernel.words and not profile.keeps_feature("dropout"):
        return False
    if "alibi" in kernel.words and not profile.keeps_feature("alibi"):
        return False
    return reachable(kernel, entries)


def choose(profile, names, entries):
    """The names of the kernels compiled, of all that generate.py would write for one direction."""
    kernels = [Kernel(n) for n in names if not n.endswith("_api")]
    if profile.full or not kernels:
        return [k.name for k in kernels]
    there = {k.dtype for k in kernels}
    for dtype in profile.dtypes:
        if dtype not in there:
            raise units.Refused("the CK back end has no dtype %s; it has %s" % (dtype, ", ".join(sorted(there))), "choose among those")
    dims = serves(profile.dims, {k.dim for k in kernels})
    return [k.name for k in kernels if keeps(profile, k, dims, entries)]


def label(profile):
    """Short words for a version's local part: ck.bf16.d128.fwd.nodropout"""
    if profile.full:
        return ["ck", "full"]
    off = ["no" + f for f in FEATURES if not profile.keeps_feature(f)]
    return ["ck"] + sorted(profile.dtypes) + ["d" + d for d in sorted(profile.dims, key=int)] + ([] if profile.backward else ["fwd"]) + (
        off or ["all"])


def entry_text(source):
    folder = os.path.join(source, ENTRIES)
    return "\n".join(units.read(os.path.join(folder, n)) for n in sorted(os.listdir(folder)) if n.endswith(".cpp"))


def say_profile(profile, folder):
    """The copies that setup.py compiles (.cu of .cpp): a call without a kernel names the profile and the command."""
    if profile.full:
        return
    more = ": flash-attn was built without a kernel for this call; profile: %s. To get everything: fainstall install --rebuild --route ck --profile full" % (
        profile.words())
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.endswith(".cu"):
            units.write_if_changed(path, HELD.sub(lambda m: units.quote(m[1] + more), units.read(path)))


def forget_kernels(folder):
    """setup.py compiles every fmha_* file that lies there, those of another profile or release too. The .hip files stay: hipify keeps
    the time of one that it would write alike, and then nothing is compiled again."""
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if SOURCE.search(name) and not name.endswith(".hip"):
            os.unlink(os.path.join(folder, name))


def expect(sources, table):
    """{unit: [seconds, MiB]}, by the kind of kernel; table: "ck" of matrix/units.json."""
    others, kinds = table.get("others") or {"*": [0, 0]}, table.get("kinds") or {}
    out = {}
    for name in map(units.unit_name, sources):
        m = KERNEL.match(name)
        out[name] = kinds[m[1]]["expect"] if m and m[1] in kinds else others.get(name) or others["*"]
    return out


def record(profile, sources, archs):
    """What goes into the wheel."""
    kernels = [Kernel(n) for n in map(units.unit_name, sources) if KERNEL.match(n)]
    return {"profile": profile.name, "back_end": "ck", "dtypes": sorted({k.dtype for k in kernels}), "archs": archs, "units": len(sources),
            "head_dims": sorted({k.dim for k in kernels}, key=int), "backward": any(k.kind == "bwd" for k in kernels),
            "features": "all" if profile.features is None else [f for f in FEATURES if profile.keeps_feature(f)]}


def is_generator(argv):
    return isinstance(argv, list) and len(argv) > 1 and str(argv[1]).endswith("01_fmha/generate.py")


def generate(wanted, program, arguments):
    """Runs generate.py twice: to list what there is, and to write what is wanted."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as listed:
        at = arguments.index("--output_dir")
        once_more(program, arguments[:at] + ["--list_blobs", listed.name] + arguments[at + 2:])
        names = [units.unit_name(line.strip()) for line in listed if line.strip()]
    keep = set(choose(units.Profile(wanted), names, wanted["entries"]))
    fnmatch.fnmatch = lambda name, pattern: name in keep
    once_more(program, arguments + ["--filter", "*@*@*"])
    for name in set(names) - keep:  # up to 2.7.4 two kinds of the backward's helpers are written without being asked about
        path = os.path.join(arguments[at + 1], name + ".cpp")
        if not name.endswith("_api") and os.path.exists(path):
            os.unlink(path)
    kernels = len([n for n in names if not n.endswith("_api")])
    print("fainstall " + json.dumps({"left_out_of": [kernels - len(keep), kernels]}), flush=True)


def once_more(program, arguments):
    sys.argv = [program] + arguments
    for name in [n for n in sys.modules if n.split(".")[0] == "codegen"]:
        del sys.modules[name]
    runpy.run_path(program, run_name="__main__")


def main(path, program, arguments):
    with open(path, encoding="utf-8") as f:
        wanted = json.load(f)
    try:
        generate(wanted, program, arguments)
    except units.Refused as e:
        units.write_if_changed(path + ".refused", json.dumps([str(e), e.step]))
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]))
