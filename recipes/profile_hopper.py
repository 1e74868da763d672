"""Which units of Flash-Attention 3 (upstream's folder hopper/) a profile compiles, and the text of the files generated for it.

Features are left out by upstream's own switches (hopper.json): they are set before its setup.py runs and reach the kernels, the C++
entry file and its note of what it holds. Kernels (types, head dims, architectures) are left out here: the signature of each stands
in its .cu file, and one generated C++ file defines it as a function that says what is missing. Upstream's switches for head dims
are not used: hopper.json says why."""

import itertools
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
        header = re.search(r'#include\s+"(flash_\w+_launch_template\.h)"', units.read(source))
        self.header = os.path.join(os.path.dirname(os.path.dirname(source)), header[1]) if header else None

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


def parameter_names(kernel):
    return [re.search(r"(\w+)\s*$", p)[1] for p in kernel.parameters.split(",")]


def kernels(source):
    m = UNIT.search(source)
    found = [Kernel(source, m, f) for f in KERNEL.finditer(without_comments(units.read(source)))]
    if not m or not found:
        raise units.Refused("%s: no function found that could be left out" % source)
    return found


class Plan:
    """How one unit may be divided: each level names what is settled in each of its parts."""

    def __init__(self, work, kernel, seconds, mib):
        self.kernel, self.level, self.levels, self.mib = kernel, 0, [[]], mib
        share = TABLE["headers"]
        self.base, self.rest = seconds * share, seconds * (1 - share) * work.kernels_of(kernel.kind) / TABLE["kernels"][kernel.kind]
        if kernel.arch != "90" or not kernel.header:
            return
        self.masks, self.gqa, self.names, self.functions = conditions(kernel.header)
        for axes in TABLE["parts"][kernel.kind]:
            values = [self.values(work, axis) for axis in axes]
            if all(values):
                self.levels.append([dict(zip(axes, row)) for row in itertools.product(*values)])

    def values(self, work, axis):
        if axis == "mask":
            return (["none", "causal"] + (["local"] if work.profile.keeps_feature("local") else [])) if self.masks else []
        return [False, True] if self.gqa else []

    def seconds(self):
        """Of its longest part."""
        return self.base + self.rest / max(1, len(self.levels[self.level]))

    def parts_seconds(self):
        return [self.seconds()] * max(1, len(self.levels[self.level]))

    def name(self, row, function=None):
        return (function or self.kernel.function).rstrip("_") + "_" + "_".join(str(v).lower() if k == "mask" else k.lower() if v else "no_" + k.lower() for k, v in row.items())

    def asked(self, row):
        """The part's condition: upstream's own, of its launch template."""
        out = []
        for axis, value in row.items():
            causal, local = self.masks or ("", "")
            if axis == "GQA":
                out.append("(%s) == %s" % (self.gqa, str(value).lower()))
            elif value == "causal":
                out.append("(%s)" % causal)
            else:
                out.append("!(%s)" % causal)
                if any(r.get("mask") == "local" for r in self.levels[self.level]):
                    out.append("bool(%s) == %s" % (local, str(value == "local").lower()))
        return " && ".join(out)

    def text(self, row):
        """A part's .cu file. A part that is asked for another side raises; it cannot compute something else."""
        out = ["// Generated: a part of %s. Upstream's text is included, not copied." % os.path.basename(self.kernel.source)]
        # Functions that decide are others in each part: under one name the linker would keep one of them.
        out += ["#define %s %s" % (f, self.name(row, f)) for f in sorted({self.kernel.function, *self.functions})]
        out += ['extern "C" void fa_wrong_part(const char *what);',
               '#include "static_switch.h"']
        if "mask" in row:
            out += ["#undef CAUSAL_LOCAL_SWITCH",
                    "#define CAUSAL_LOCAL_SWITCH(CAUSAL, LOCAL, CAUSAL_NAME, LOCAL_NAME, ...) [&] { "
                    "if (bool(CAUSAL) != %s || (!bool(CAUSAL) && bool(LOCAL)) != %s) fa_wrong_part(\"mask\"); "
                    "constexpr static bool CAUSAL_NAME = %s; constexpr static bool LOCAL_NAME = %s; return __VA_ARGS__(); }()" % (
                        (str(row["mask"] == "causal").lower(), str(row["mask"] == "local").lower()) * 2)]
        if "GQA" in row:
            out += ["#undef BOOL_SWITCH", "#define BOOL_SWITCH(COND, NAME, ...) FA_SWITCH_##NAME(COND, NAME, __VA_ARGS__)",
                    "#define FA_SWITCH_GQA(COND, NAME, ...) [&] { if (bool(COND) != %s) fa_wrong_part(#NAME); "
                    "constexpr static bool NAME = %s; return __VA_ARGS__(); }()" % ((str(row["GQA"]).lower(),) * 2)]
            out += ["#define FA_SWITCH_%s(COND, NAME, ...) [&] { if (COND) { constexpr static bool NAME = true; return __VA_ARGS__(); } "
                    "else { constexpr static bool NAME = false; return __VA_ARGS__(); } }()" % name for name in self.names if name != "GQA"]
        return "\n".join(out + ['#include "instantiations/%s"' % os.path.basename(self.kernel.source)]) + "\n"


def conditions(header):
    """(causal, local), GQA, the names of all switches of a launch template and the functions that hold one; conditions that name
    `params` only, else None."""
    text = without_comments(units.read(header))
    masks = {(" ".join(a.split()), " ".join(b.split())) for a, b in re.findall(r"\bCAUSAL_LOCAL_SWITCH\(([^,()]+),([^,()]+),", text)}
    gqa = {" ".join(c.split()) for c in re.findall(r"\bBOOL_SWITCH\(([^,()]+),\s*GQA,", text)}
    names = set(re.findall(r"_SWITCH\([^;{}]*?,\s*(\w+),\s*\[&\]", text))

    functions, last = set(), None
    for function, switch in re.findall(r"\bvoid\s+(\w+)\s*\(|(\w+_SWITCH)\(", text):
        last = function or last
        functions.update({last} if switch and last else ())

    def known(condition):
        return set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", condition)) <= {"params"}
    return (masks.pop() if len(masks) == 1 and all(known(c) for m in masks for c in m) else None,
            gqa.pop() if len(gqa) == 1 and all(known(c) for c in gqa) else None, sorted(names), functions)


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
        self.divide([self.usual(s)[0] for s in rest + self.entry])
        self.sources = self.order([self.entry_file(), self.write_glue()] + rest + self.kept_sources)
        self.describe()

    def keep(self, cuda):
        """A unit that only includes smaller ones (3.0.0b1: all head dims in one) is those that are wanted: what it takes of memory
        would be theirs together."""
        self.kept, self.left_out, self.kept_sources, self.plans = [], [], [], []
        for source in cuda:
            all_leaves = leaves(source)
            parts = {leaf: kernels(leaf) for leaf in all_leaves}
            wanted = [leaf for leaf in all_leaves if any(self.profile.keeps(k) for k in parts[leaf])]
            self.kept_sources += self.plan(wanted, parts)
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

    # ---- finer units

    def plan(self, leaves_, parts):
        """Those of one kernel may be divided; the others stay as they are."""
        whole = []
        for leaf in leaves_:
            if self.profile.full or len(parts[leaf]) != 1:
                whole.append(leaf)
                continue
            seconds, mib = self.usual(leaf)
            self.plans.append(Plan(self, parts[leaf][0], seconds, mib))
        return whole

    def divide(self, others):
        """Parts of long units, as long as the end of the whole build comes nearer: each reads the headers again. The others' seconds
        count, they take cores too."""
        cores = max(1, int(self.job.get("cores") or 1))
        end = units.makespan(others + [s for p in self.plans for s in p.parts_seconds()], cores)
        while True:
            longest = max([p.seconds() for p in self.plans if p.level + 1 < len(p.levels)] or [0])
            group = [p for p in self.plans if p.level + 1 < len(p.levels) and p.seconds() > 0.9 * longest]
            if not group:
                break
            for p in group:
                p.level += 1
            shorter = units.makespan(others + [s for p in self.plans for s in p.parts_seconds()], cores)
            if shorter < end * 0.98:
                end = shorter
                continue
            for p in group:
                p.level -= 1
                p.levels = p.levels[:p.level + 1]
        for p in self.plans:
            names = [p.kernel.source]
            if p.levels[p.level]:
                names = []
                for number, row in enumerate(p.levels[p.level]):  # upstream's build tells the architecture by the name's end
                    names.append(os.path.join(self.generated, "%s.%d_sm90.cu" % (units.unit_name(p.kernel.source), number + 1)))
                    units.write_if_changed(names[-1], p.text(row))
            self.kept_sources += names
            for name in names:
                self.expect[units.unit_name(name)] = [round(p.seconds(), 1), p.mib]

    def kernels_of(self, kind):
        """How many kernels of a unit are not left out."""
        keeps = self.profile.keeps_feature
        if kind == "bwd":  # masks, ragged batches, grouped heads, deterministic
            return (2 + keeps("local")) * (1 + keeps("varlen")) * 4
        return (2 + keeps("local")) * (1 + keeps("varlen") * (1 + keeps("append"))) + 1  # appending to a cache; clusters

    def dispatcher(self, plan):
        kernel = plan.kernel
        words = " ".join(kernel.parameters.split())
        names = ", ".join(parameter_names(kernel))
        arguments = re.search(r"template\s*<([^>]*)>\s*void\s+%s\s*\(" % kernel.function, units.read(os.path.join(self.folder, "flash.h")))[1]
        before = ["template <%s> void %s(%s);" % (arguments, plan.name(row), words) for row in plan.levels[plan.level]]
        body = ["if (%s) return %s<%s>(%s);" % (plan.asked(row), plan.name(row), kernel.arguments, names) for row in plan.levels[plan.level]]
        return before, "template<> void %s<%s>(%s) { %s throw std::runtime_error(\"flash-attn-3: no kernel for this mixture of features\"); }" % (
            kernel.function, kernel.arguments, words, " ".join(body))

    # ---- what is compiled for one architecture alone

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
        divided = [self.dispatcher(p) for p in self.plans if p.levels[p.level]]
        if divided:
            out += ["#include <string>", 'extern "C" void fa_wrong_part(const char *what) { throw std::runtime_error(std::string('
                    '"flash-attn-3: ") + what + " was reached in a part that does not hold it"); }']
        out += list(dict.fromkeys(line for before, _ in divided for line in before)) + [text for _, text in divided]
        for k in self.left_out:
            names = parameter_names(k)
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

    def usual(self, source):
        """Seconds and MiB of all that a file holds."""
        name, m = units.unit_name(source), UNIT.search(source)
        key = m[1] if m else re.sub(r"_stable$|_sm90$", "", name)
        return (self.job.get("expected") or {}).get(name) or TABLE["expect"].get(key) or TABLE["expect"]["fwd"]

    def order(self, sources):
        """Longest first: the build system starts them in this order, the gate keeps it."""
        for s in sources:
            self.expect.setdefault(units.unit_name(s), list(self.usual(s)))
        return sorted(sources, key=lambda s: -self.expect[units.unit_name(s)][0])

    def describe(self):
        p = self.profile
        self.record = {"profile": p.name, "line": "fa3", "dtypes": sorted({k.dtype for k in self.kept}), "backward": p.backward,
                       "head_dims": sorted({k.dim for k in self.kept}, key=int), "archs": self.job["archs"],
                       "features": "all" if p.features is None else p.held(),
                       "defines": [TABLE["switches"][w]["set"] for w in p.off()] if not p.full else [],
                       "units": len(self.sources), "torch_free_kernels": self.torch_free, "divided": len([p for p in self.plans if p.levels[p.level]])}


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
