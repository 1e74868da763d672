"""Which units of Flash-Attention 3 (upstream's folder hopper/) a profile compiles, and the text of the files generated for it.

Features are left out by upstream's own switches (hopper.json): they are set before its setup.py runs and reach the kernels, the C++
entry file and its note of what it holds. Kernels (types, head dims, architectures) are left out here: the signature of each stands
in its .cu file, and one generated C++ file defines it as a function that says what is missing. Upstream's switches for head dims
are not used: hopper.json says why."""

import json
import os
import re

import profile_units as units
from switches import without_comments

UNIT = re.compile(r"flash_(fwd|bwd)_hdim(all|diff|\d+(?:_\d+)?)_(fp16|bf16|e4m3)((?:_[a-z]+)*)_sm(\d+)\.cu$")
KERNEL = re.compile(r"template\s*(?:<\s*>)?\s*void\s+(run_mha_\w+_)\s*<([^>]*)>\s*\(([^)]*)\)\s*[;{]")
INCLUDE = re.compile(r'^\s*#\s*include\s+"(flash_\w+\.cu)"', flags=re.M)
TORCH = re.compile(r"^\s*#\s*include\s+[<\"](?:ATen|c10|torch)/", flags=re.M)
VARIANTS = {"split": "split KV", "paged": "paged KV", "softcap": "softcap", "packgqa": "packed GQA"}

TABLE = json.loads(units.read(os.path.join(units.HOME, "hopper.json")))


def knows(folder):
    """Is it upstream's folder hopper/?"""
    return os.path.exists(os.path.join(folder, "flash_prepare_scheduler.cu"))


class Profile(units.Profile):
    """The same words as for Flash-Attention 2; other features, one more data type."""

    def __init__(self, job):
        super().__init__(job)
        for word in self.features or []:
            if word in TABLE["no_such"]:
                raise units.Refused(TABLE["no_such"][word], "leave %s out of --features" % word)
            if word not in TABLE["features"]:
                raise units.Refused("Flash-Attention 3 has no feature called %s" % word,
                                    "choose among %s" % ", ".join(TABLE["features"]))
        for word in self.dtypes:
            if word not in TABLE["dtypes"]:
                raise units.Refused("Flash-Attention 3 does not compute in %s" % word,
                                    "choose among %s" % ", ".join(TABLE["dtypes"]))

    def keeps_feature(self, word):
        return self.features is None or word in self.features

    def held(self):
        return [f for f in TABLE["features"] if self.keeps_feature(f)]

    def off(self):
        """Words of `switches` that are left out."""
        out = [w for w in TABLE["switches"] if w in TABLE["features"] and not self.keeps_feature(w)]
        out += [w for w in ("fp16", "fp8") if self.dtypes and w not in self.dtypes]
        return out + ([] if self.backward else ["backward"])

    def keeps(self, kernel):
        if kernel.arch not in self.archs:
            return False
        if self.full:
            return True
        if self.dtypes and kernel.dtype not in self.dtypes or self.dims and kernel.dim not in self.dims:
            return False
        if kernel.dim_v != kernel.dim and not self.keeps_feature("diffv"):
            return False
        return kernel.kind != "bwd" or self.backward

    def label(self):
        if self.full:
            return ["full"]
        out = sorted(self.dtypes) + ["d" + d for d in sorted(self.dims, key=int)] + ([] if self.backward else ["fwd"])
        off = [f for f in TABLE["features"] if not self.keeps_feature(f)]
        if off == TABLE["features"]:
            return out + ["bare"]
        if set(TABLE["lean"]) <= set(off):
            out.append("lean")
            off = [f for f in off if f not in TABLE["lean"]]
        return out + ["no" + f for f in off] or ["all"]

    def command(self, *args, **kwargs):
        return super().command(*args, **kwargs).replace("install --rebuild", "install --rebuild --line fa3", 1)


def profile_of(job):
    p = Profile(job)
    p.archs = set(job["archs"])
    return p


def check_version(job):
    """What upstream's folder says it is, before hours are spent on another release than the plan's."""
    m = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", units.read(os.path.join(job["source"], "__init__.py")), flags=re.M)
    is_, wanted = m and re.sub(r"\.(?=[abr])", "", m[1]), job["version"]
    if is_ and re.match(r"\d", wanted) and is_ != wanted:
        raise units.Refused("the source is Flash-Attention %s, the plan says %s" % (is_, wanted), "ask for it: --flash-attn %s" % is_)


def prepare(job):
    """Upstream's switches, as it reads them: from the environment. Whatever was set there before is gone (build_env.c)."""
    p = profile_of(job)
    for word in p.off() if not p.full else []:
        os.environ[TABLE["switches"][word]["set"]] = "TRUE"
    check_version(job)


class Kernel:
    """A function that one of upstream's .cu files defines."""

    def __init__(self, source, m, function):
        self.source = source
        self.kind, self.dtype, variant, self.arch = m[1], {v: k for k, v in TABLE["dtypes"].items()}[m[3]], m[4], m[5]
        self.dim, _, self.dim_v = m[2].partition("_")
        self.dim_v = self.dim_v or self.dim
        self.variants = [v for v in variant.split("_") if v]
        self.function, self.arguments, self.parameters = function[1], " ".join(function[2].split()), function[3]

    def words(self):
        return "%s head dim %s%s %s%s%s" % (
            self.dtype, self.dim, " with V head dim %s" % self.dim_v if self.dim_v != self.dim else "",
            units.WORDS[self.kind], "".join(", " + VARIANTS.get(v, v) for v in self.variants),
            " for sm_%s" % self.arch if self.arch != "90" else "")


def without_line_comments(text):
    return re.sub(r"//[^\n]*", " ", text)


def leaves(source):
    """Upstream's larger units only include smaller ones; these are the smaller ones."""
    names = INCLUDE.findall(without_line_comments(units.read(source)))
    folder = os.path.dirname(source)
    return [leaf for name in names for leaf in leaves(os.path.join(folder, name))] or [source]


def kernels(source):
    m = UNIT.search(source)
    found = [Kernel(source, m, f) for f in KERNEL.finditer(without_comments(units.read(source)))]
    if not m or not found:
        raise units.Refused("%s: no function found that could be left out" % source)
    return found


class Work:
    """What is compiled: sources, defines, generated files. `record` goes into the wheel. As profile_units.Work."""

    def __init__(self, job, sources, include_dirs):
        self.job, self.profile = job, profile_of(job)
        self.defines, self.nvcc, self.include_dirs, self.expect = [], [], [], {}
        self.generated = os.path.join(job["work"], "generated")
        self.folder = os.path.abspath(job["source"])
        cccl = os.path.join(os.environ.get("CUDA_HOME", ""), "include", "cccl")
        if os.path.isdir(cccl):  # from CUDA 13 on; g++ looks for it too
            self.include_dirs.append(cccl)
        self.torch_free = not any(TORCH.search(units.read(os.path.join(self.folder, name)))
                                  for name in os.listdir(self.folder) if name.endswith((".h", ".hpp", ".cu")))
        if self.torch_free:  # the gate then leaves torch's and Python's folders out of the key of an object
            self.nvcc.append("-DFA_SHADOW")
        sources = [os.path.join(self.folder, s) for s in sources]
        self.entry = [s for s in sources if os.path.basename(s) in ("flash_api.cpp", "flash_api_stable.cpp")]
        cuda = [s for s in sources if UNIT.search(s)]
        if len(self.entry) != 1 or not cuda:
            raise units.Refused("setup.py of hopper/ hands over other files than its releases do; this is not the source of one")
        self.keep(cuda)
        rest = [self.plain(s) for s in sources if s not in cuda and s not in self.entry]
        self.sources = self.order([self.entry_file(), self.write_glue()] + rest + self.kept_sources)
        self.describe()

    def keep(self, cuda):
        """A unit whose kernels are wanted only in part is replaced by the smaller ones that it includes."""
        self.kept, self.left_out, self.kept_sources = [], [], []
        for source in cuda:
            all_leaves = leaves(source)
            parts = {leaf: kernels(leaf) for leaf in all_leaves}
            wanted = [leaf for leaf in all_leaves if any(self.profile.keeps(k) for k in parts[leaf])]
            whole = self.profile.full and len(wanted) == len(all_leaves)
            self.kept_sources += [source] if whole else wanted
            for leaf in all_leaves:
                (self.kept if leaf in wanted else self.left_out).extend(parts[leaf])
        there = self.kept + self.left_out
        for what, wanted, have in (("dtype", self.profile.dtypes, {k.dtype for k in there}),
                                   ("head dim", self.profile.dims, {k.dim for k in there})):
            for value in wanted if not self.profile.full else []:
                if value not in have:
                    raise units.Refused("Flash-Attention 3 has no %s %s; it has %s" % (
                        what, value, ", ".join(sorted(have, key=lambda v: (len(v), v)))), "choose among those")
        if not self.kept:
            raise units.Refused("profile %s leaves no kernel to compile for sm_%s" % (
                self.profile.words(), ", sm_".join(self.job["archs"])), "widen it; Flash-Attention 3 is for sm_90")

    def plain(self, source):
        """Upstream compiles a .cu file without an architecture in its name for 8.0 and 9.0."""
        if not source.endswith(".cu") or self.profile.archs != {"90"}:
            return source
        path = os.path.join(self.generated, "%s_sm90.cu" % units.unit_name(source))
        units.write_if_changed(path, '// Generated: for 9.0 alone.\n#include "%s"\n' % os.path.basename(source))
        return path

    def nvcc_flags(self, flags):
        """Upstream's own; the architecture follows from the file's name. -lineinfo is debug information."""
        return [f for f in flags if f != "-lineinfo"]

    # ---- the C++ files

    def sentence(self, kernel):
        p = self.profile
        if kernel.arch not in p.archs:
            return "flash-attn-3 was built without sm_%s; it holds sm_%s" % (kernel.arch, ", sm_".join(sorted(p.archs)))
        return "flash-attn-3 was built without %s; profile: %s. To get it: %s" % (
            kernel.words(), p.words(),
            p.command(kernel.dtype, kernel.dim, kernel.kind == "bwd", "diffv" if kernel.dim_v != kernel.dim else None))

    def write_glue(self):
        out = ["// Generated for the profile %s." % self.profile.words(), "#include <stdexcept>", "#include <cuda_runtime.h>",
               "#include <cutlass/numeric_types.h>", '#include "flash.h"']
        for k in self.left_out:
            names = [re.search(r"(\w+)\s*$", p)[1] for p in k.parameters.split(",")]
            out.append("template<> void %s<%s>(%s) { %s throw std::runtime_error(%s); }" % (
                k.function, k.arguments, " ".join(k.parameters.split()), " ".join("(void)%s;" % n for n in names),
                units.quote(self.sentence(k))))
        path = os.path.join(self.generated, "profile.cpp")
        units.write_if_changed(path, "\n".join(out) + "\n")
        return path

    def entry_file(self):
        """Upstream's refusals of what was switched off get the profile and the command added; nothing else changes."""
        if self.profile.full:
            return self.entry[0]
        rows = []
        for word in self.profile.off():
            step = self.profile.command(backward=word == "backward", feature=word if word in TABLE["features"] else None,
                                        dtype=word if word in TABLE["dtypes"] else None)
            rows += ["{%s, %s}" % (units.quote(says), units.quote(step)) for says in TABLE["switches"][word]["says"]]
        text = units.read(self.entry[0])
        includes = re.findall(r"^\s*#include\s+[<\"][^>\"]+[>\"]", text, flags=re.M)
        path = os.path.join(self.generated, os.path.basename(self.entry[0]))
        units.write_if_changed(path, "\n".join(includes) + "\n" + ENTRY % (
            ", ".join(rows) or "{nullptr, nullptr}", units.quote(self.profile.words()), os.path.abspath(self.entry[0])))
        return path

    # ---- what is told

    def order(self, sources):
        """Longest first: the build system starts them in this order, the gate keeps it."""
        table = TABLE["expect"]
        for s in sources:
            name = units.unit_name(s)
            m = UNIT.search(s)
            key = m[1] if m else re.sub(r"_stable$|_sm90$", "", name)
            self.expect[name] = (self.job.get("expected") or {}).get(name) or table.get(key) or table["fwd"]
        return sorted(sources, key=lambda s: -self.expect[units.unit_name(s)][0])

    def describe(self):
        p = self.profile
        self.record = {"profile": p.name, "line": "fa3", "dtypes": sorted({k.dtype for k in self.kept}), "backward": p.backward,
                       "head_dims": sorted({k.dim for k in self.kept}, key=int), "archs": self.job["archs"],
                       "features": "all" if p.features is None else p.held(),
                       "defines": [TABLE["switches"][w]["set"] for w in p.off()] if not p.full else [],
                       "units": len(self.sources), "torch_free_kernels": self.torch_free, "divided": 0}


ENTRY = """
#include <sstream>
#include <stdexcept>
#include <string>
namespace fa_profile {
template <class... A> std::string join(const char *cond, const A &...a) {
  std::ostringstream s;
  ((s << a), ...);
  return sizeof...(a) ? s.str() : std::string("Expected ") + cond + " to be true, but got false.";
}
inline std::string say(std::string text) {
  static const struct { const char *says, *command; } steps[] = {%s};
  for (const auto &s : steps)
    if (s.says && text.find(s.says) != std::string::npos)
      return text + " Built as profile: " + %s + ". To get it: " + s.command;
  return text;
}
}
#undef STD_TORCH_CHECK
#define STD_TORCH_CHECK(cond, ...) \\
  do { if (!(cond)) throw std::runtime_error(fa_profile::say(fa_profile::join(#cond, ##__VA_ARGS__))); } while (0)
#ifdef TORCH_CHECK
#undef TORCH_CHECK
#define TORCH_CHECK(cond, ...) \\
  do { if (!(cond)) C10_THROW_ERROR(Error, fa_profile::say(fa_profile::join(#cond, ##__VA_ARGS__))); } while (0)
#endif
#include "%s"
"""
