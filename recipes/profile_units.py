"""Which units a profile compiles, and the text of the files generated for it.

Everything is read from the release's own files: the signature of a kernel left out stands in its .cu file, the kernels of a
part in the launch templates (launches.py), the features that can be switched off in static_switch.h."""

import json
import os
import re

import launches
from switches import FEATURES, Switches, even_dims, without_comments

UNIT = re.compile(r"flash_(fwd_split|fwd|bwd)_hdim(\d+)_(fp16|bf16)(_causal)?_sm\d+\.cu$")
FUNCTION = re.compile(r"template\s*(?:<\s*>)?\s*void\s+(\w+)\s*<([^>]*)>\s*\(([^)]*)\)\s*([;{])")
EXTRAS = ("dropout", "alibi", "softcap", "local")
WORDS = {"fwd": "forward", "bwd": "backward", "fwd_split": "split-KV forward"}
HOME = os.path.dirname(os.path.abspath(__file__))


class Refused(Exception):
    """A profile that cannot be built: a sentence, and the next step."""

    def __init__(self, text, step=""):
        super().__init__(text)
        self.step = step


def unit_name(source):
    return os.path.splitext(os.path.basename(source))[0]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write_if_changed(path, text):
    """An unchanged file keeps its time: the build system then compiles nothing again."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or read(path) != text:
        with open(path + ".tmp", "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(path + ".tmp", path)


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Unit:
    """One .cu file of a release and the function that it defines."""

    def __init__(self, source, src_dir):
        m = UNIT.search(source)
        self.source, self.name = source, unit_name(source)
        self.kind, self.dim, self.dtype, self.causal = m[1], m[2], m[3], bool(m[4])
        text = without_comments(read(source))
        f = FUNCTION.search(text)
        if not f:
            raise Refused("%s: no function found that could be left out or divided" % source)
        self.function, self.arguments, self.parameters = f[1], " ".join(f[2].split()), " ".join(f[3].split())
        self.type = self.arguments.split(",")[0].strip()
        self.space = "FLASH_NAMESPACE" if "FLASH_NAMESPACE" in text else None
        header = re.search(r'#include\s+"(flash_\w+_launch_template\.h)"', text)
        self.header = os.path.join(src_dir, header[1]) if header else None

    def words(self):
        return "%s head dim %s%s %s" % (self.dtype, self.dim, " causal" if self.causal else "", WORDS[self.kind])

    def parameter_names(self):
        return [re.search(r"(\w+)\s*$", p)[1] for p in self.parameters.split(",")]

    def signature(self, space=""):
        return "void %s%s<%s>(%s)" % (space, self.function, self.arguments, self.parameters)


class Profile:
    def __init__(self, job):
        self.name = job.get("profile") or "full"
        self.full = self.name == "full"
        small = self.name in ("training", "inference")
        self.dtypes = job.get("dtypes") or (["bf16"] if small else [])
        self.dims = [str(d) for d in job.get("head_dims") or (["128"] if small else [])]
        self.backward = self.full or self.name == "training" or bool(job.get("backward"))
        if self.name == "inference":
            self.backward = False
        features = job.get("features") or []
        self.features = None if self.full or not features else [f for f in features if f != "none"]
        self.release = Switches(job.get("source") or "")

    def keeps_feature(self, word):
        """Those that the release cannot be built without are kept, asked for or not."""
        return self.features is None or word in self.features or word in self.release.stay

    def held(self):
        return [f for f in list(FEATURES) + ["split"] if self.keeps_feature(f)]

    def keeps(self, unit):
        if self.full:
            return True
        if self.dtypes and unit.dtype not in self.dtypes or self.dims and unit.dim not in self.dims:
            return False
        if unit.kind == "bwd":
            return self.backward
        return unit.kind != "fwd_split" or self.keeps_feature("split")

    def label(self):
        """Short words for a version's local part: fa.bf16.d128.fwd.lean"""
        if self.full:
            return ["full"]
        out = sorted(self.dtypes) + ["d" + d for d in sorted(self.dims, key=int)] + ([] if self.backward else ["fwd"])
        off = [f for f in list(FEATURES) + ["split"] if not self.keeps_feature(f)]
        if set(EXTRAS) <= set(off):
            out.append("lean")
            off = [f for f in off if f not in EXTRAS]
        return out + ["no" + f for f in off] or ["all"]

    def words(self):
        what = [",".join(self.dtypes) or "all dtypes", "head dim " + ",".join(self.dims) if self.dims else "all head dims",
                "forward and backward" if self.backward else "forward only"]
        if self.features is not None:
            what.append("features " + (",".join(self.held()) or "none"))
        return "%s (%s)" % (self.name, "; ".join(what))

    def command(self, dtype=None, dim=None, backward=False, feature=None):
        """The command that builds this profile and the thing asked for."""
        def more(have, extra):
            return have + [extra] if have and extra and extra not in have else have
        profile = "training" if self.backward or backward else "inference"
        words = ["fainstall install --rebuild --route source --profile", profile]
        dims = sorted(more(self.dims, dim), key=int)
        for option, values in (("--dtype", more(self.dtypes, dtype)), ("--head-dim", dims),
                               ("--features", more(self.features or [], feature))):
            if values:
                words += [option, ",".join(values)]
            elif option == "--features" and self.features == []:
                words += [option, feature or "none"]
        return " ".join(words)


class Work:
    """What is compiled: sources, defines, generated files. `record` goes into the wheel."""

    def __init__(self, job, sources, include_dirs):
        self.job, self.profile = job, Profile(job)
        self.sources, self.left_out, self.defines, self.nvcc, self.include_dirs = [], [], [], [], []
        self.generated = os.path.join(job["work"], "generated")
        cuda = [s for s in sources if UNIT.search(s)]
        self.kernel_dims = sorted({int(UNIT.search(s)[2]) for s in cuda})
        self.src_dir = os.path.abspath(os.path.dirname(cuda[0])) if cuda else ""
        rest = [s for s in sources if not UNIT.search(s)]
        self.entry = [s for s in rest if s.endswith("flash_api.cpp")]
        self.shadow = False
        self.expect, self.divided = {}, 0
        if self.profile.full or not cuda or not self.entry:
            self.sources = list(sources)
            self.describe([])
            return
        all_units = [Unit(s, self.src_dir) for s in cuda]
        kept = [u for u in all_units if self.profile.keeps(u)]
        self.left_out = [u for u in all_units if not self.profile.keeps(u)]
        self.check(all_units, kept)
        self.switch_off(kept)
        self.use_shadow(kept)
        self.divide(kept)
        self.write_glue()
        self.sources = self.order([s for s in rest if s not in self.entry] + [self.entry_file()] + self.sources)
        self.describe(kept)

    def check(self, all_units, kept):
        for what, wanted, there in (("dtype", self.profile.dtypes, {u.dtype for u in all_units}),
                                    ("head dim", self.profile.dims, {u.dim for u in all_units})):
            for value in wanted:
                if value not in there:
                    raise Refused("this release has no %s %s; it has %s" % (what, value, ", ".join(sorted(there))),
                                  "choose among those")
        if not kept:
            raise Refused("profile %s leaves no kernel to compile" % self.profile.words(), "widen it")

    def switch_off(self, kept):
        """Features not wanted, where the release has a switch for them that the kernels and the entry file honour."""
        release = self.profile.release
        self.switched = [w for w in release.off if not self.profile.keeps_feature(w)]
        self.defines += ["-DFLASHATTENTION_DISABLE_" + FEATURES[w][0] for w in self.switched]
        if not self.profile.backward and release.backward_off():
            self.defines.append("-DFLASHATTENTION_DISABLE_BACKWARD")

    def nvcc_flags(self, flags):
        """Upstream's flags without its own choice of architectures and threads, with ours. setup.py is edited to C++20 for the sake of
        torch's headers: kernels that read none keep the release's own standard, and one object serves every torch."""
        out, skip, own = [], False, os.environ.get("FAINSTALL_KERNEL_CXX")
        for flag in flags:
            if skip:
                skip = False
            elif flag in ("-gencode", "--threads", "-t"):
                skip = True
            elif own and self.shadow and flag.startswith("-std=c++"):
                out.append("-std=c++" + own)
            elif not flag.startswith(("-gencode=", "--threads=")):
                out.append(flag)
        for arch in self.job["archs"]:
            out += ["-gencode", "arch=compute_%s,code=sm_%s" % (arch, arch)]
        return out + ["--threads", "1"]

    # ---- kernels that do not read torch's headers

    def use_shadow(self, kept):
        """Torch's headers cost a quarter of a small unit's time and tie its object to one torch; the kernels use three things of
        them. Only where the release reads no other, and torch lays the one struct out in a way that is known."""
        used = set()
        for name in os.listdir(self.src_dir):
            used.update(re.findall(r"#include\s+<((?:ATen|c10|torch)/[^>]+)>", read(os.path.join(self.src_dir, name))))
        have = {os.path.relpath(os.path.join(d, f), os.path.join(HOME, "shadow"))
                for d, _, files in os.walk(os.path.join(HOME, "shadow")) for f in files}
        if self.job.get("shadow") is False or not used or not used <= have:
            return
        raw = os.path.join(self.job["torch_folder"], "include/ATen/cuda/detail/PhiloxCudaStateRaw.cuh")
        m = os.path.exists(raw) and re.search(r"\b(uint32_t|uint64_t)\s+offset_intragraph_", read(raw))
        if not m:
            return
        self.shadow = True
        self.device_struct = "ATen/cuda/CUDAContext.h" in used
        self.include_dirs = [os.path.join(HOME, "shadow")]
        self.nvcc += ["-DFA_SHADOW", "-DFA_INTRAGRAPH=" + m[1]]
        self.intragraph = m[1]

    # ---- units taken apart: a launcher for the host, parts for the device

    def divide(self, kept):
        """Host and device are compiled apart (launches.py, device_part.py), and the device's kernels in parts where one unit would keep
        the other cores waiting. A part reads the headers and makes the types again: each further division must bring the end of the whole
        build nearer."""
        self.table = json.loads(read(os.path.join(HOME, "parts.json")))
        self.templates = {u.header: self.template(u) for u in kept if u.header}
        plans = [Plan(self, u) for u in kept]
        share_out(plans, max(1, int(self.job.get("cores") or 1)), [row[0] for word, row in self.table["others"].items() if word != "*"])
        launched = {}
        for p in plans:
            self.divided += len(p.rows) > 1
            for number, row in enumerate(p.rows):
                path = self.write_part(p, row, number) if p.template else p.unit.source
                self.sources.append(path)
                self.expect[unit_name(path)] = [round(p.seconds(row), 1), p.peak]
            if p.template:
                launched.setdefault(p.unit.header, []).append(p)
        for header, held in sorted(launched.items()):
            self.sources.append(self.write_launcher(header, held))
        # Cores that are left over stay idle: -split-compile=2 would use them, but makes worse code. Measured on an H200 (2.8.3, bf16,
        # head dim 128, 2 x 8,192 tokens): backward 8.7 -> 11.9 ms, causal forward 1.58 -> 1.83 ms; nvcc 13.0.

    def template(self, unit):
        """The launch template of a unit, or None where its text cannot be taken apart."""
        text = read(unit.header) if os.path.exists(unit.header) else ""
        return launches.Template(text) if launches.launcher(text) else None

    def dead(self, unit):
        """Kernels that no card running these architectures can reach: the branch is upstream's own, decided at run time."""
        out, text = [], " ".join(without_comments(read(unit.header)).split())
        for row in self.table["never"]:
            if row["kind"] != unit.kind or row["dim"] != unit.dim or row.get("causal", unit.causal) != unit.causal:
                continue
            if not set(self.job["archs"]) <= set(row["archs"]) or row["call"] not in text:
                continue
            for dropout in row["dropout"]:
                name = row["call"].replace("Headdim", unit.dim).replace(" T>", " %s>" % unit.type)
                out.append(name.replace("Is_dropout", str(bool(dropout)).lower())
                           .replace("Is_causal", str(unit.causal).lower()))
        return out

    def unreached(self, plan, body):
        """Functions in place of those that would start kernels no card can reach."""
        if not plan.dead:
            return []
        parameters = re.sub(r"\w+\s*(,|$)", r"\1", plan.unit.parameters)
        out = ["template<> void %s(%s) { %s }" % (name, parameters, body % quote(name) if body else "") for name in plan.dead]
        return ["namespace FLASH_NAMESPACE {"] + out + ["}"] if plan.unit.space else out

    def write_part(self, plan, row, number):
        """Kernels for the device. The folder's name tells the gate how to compile it."""
        unit, folder = plan.unit, os.path.join(self.generated, "device")
        header = "%s.%s.h" % (unit_name(unit.header), "more" if number else "first")
        write_if_changed(os.path.join(folder, header), plan.template.part(number == 0))
        text = ["// Generated: kernels of %s, for the device alone." % os.path.basename(unit.source), '#include "static_switch.h"']
        text += plan.template.settled({**plan.kernels.always, **row}) + ['#include "%s"' % header] + self.unreached(plan, "") + [without_template(unit)]
        path = os.path.join(folder, "%s.%d.cu" % (unit.name, number + 1))
        write_if_changed(path, "\n".join(text) + "\n")
        return path

    def write_launcher(self, header, plans):
        """Host code that starts the kernels of some units."""
        text = ["// Generated: what starts the kernels of %s." % ", ".join(p.unit.name for p in plans),
                'extern "C" void fa_wrong_part(const char *what);', launches.LAUNCH, plans[0].template.launcher]
        for p in plans:
            text += self.unreached(p, "fa_wrong_part(%s);") + [without_template(p.unit)]
        path = os.path.join(self.generated, unit_name(header).replace("_template", "") + ".cu")
        write_if_changed(path, "\n".join(text) + "\n")
        if int((self.job.get("nvcc") or "0").split(".")[0]) >= 13:  # of a kernel that lies elsewhere there is no local stand-in
            self.nvcc += [w for w in ["-static-global-template-stub=false"] if w not in self.nvcc]
        return path

    # ---- the C++ file that holds it together

    def sentence(self, unit):
        p = self.profile
        return "flash-attn was built without %s; profile: %s. To get it: %s" % (
            unit.words(), p.words(),
            p.command(unit.dtype, unit.dim, unit.kind == "bwd", "split" if unit.kind == "fwd_split" else None))

    def stub(self, unit):
        names = unit.parameter_names()
        body = ['C10_THROW_ERROR(Error, %s);' % quote(self.sentence(unit))]
        if unit.kind == "fwd_split" and self.profile.keeps(Like(unit, "fwd")):
            body = self.unsplit(unit, names) + body
        return "template<> %s { %s %s }" % (unit.signature(), " ".join("(void)%s;" % n for n in names), " ".join(body))

    def unsplit(self, unit, names):
        """Splitting is a choice of speed where nothing is appended, paged or indexed: upstream's own condition for needing it.
        Such a call goes to the ordinary kernel, one split, and gives the same numbers."""
        fields = read(os.path.join(self.src_dir, "flash.h"))
        needs = [f for f in ("knew_ptr", "block_table", "cache_batch_idx", "leftpad_k") if re.search(r"\b%s;" % f, fields)]
        return ["if (%s) { params.num_splits = 1; run_mha_fwd_<%s>(%s); return; }" % (
            " && ".join("params.%s == nullptr" % f for f in needs), unit.arguments, ", ".join(names))]

    def write_glue(self):
        spaced = any(u.space for u in self.left_out)
        out = ["// Generated for the profile %s." % self.profile.words(),
               "#include <c10/util/Exception.h>", "#include <c10/cuda/CUDAException.h>"]
        if self.shadow:
            out += ["#include <ATen/cuda/CUDAGeneratorImpl.h>", "#include <cstddef>"]
            out += ["#include <ATen/cuda/CUDAContext.h>", "#include <type_traits>"] if self.device_struct else []
        out += ["#include <cutlass/numeric_types.h>"]
        out += ['#include "namespace_config.h"'] if os.path.exists(os.path.join(self.src_dir, "namespace_config.h")) else []
        out += ['#include "flash.h"',
                'extern "C" void fa_wrong_part(const char *what) { C10_THROW_ERROR(Error, std::string("flash-attn: ") + what + '
                '" was reached in a part that does not hold it"); }']
        if self.shadow:
            out += SHADOW_CHECK.replace("INTRAGRAPH", self.intragraph).splitlines()
            out += DEVICE_CHECK.splitlines() if self.device_struct else []
        out += ["namespace FLASH_NAMESPACE {"] if spaced else []
        out += [self.stub(u) for u in self.left_out if u.kind != "fwd_split"]
        out += [self.stub(u) for u in self.left_out if u.kind == "fwd_split"]
        out += ["}"] if spaced else []
        path = os.path.join(self.generated, "profile.cpp")
        write_if_changed(path, "\n".join(out) + "\n")
        self.sources.append(path)

    def entry_file(self):
        """Upstream's refusals of what was switched off get the profile and the command added; nothing else changes."""
        if not self.defines:
            return self.entry[0]
        text = read(self.entry[0])
        includes = re.findall(r"^\s*#include\s+[<\"][^>\"]+[>\"]", text, flags=re.M)
        steps = {w.replace("unevenk", "headdim"): self.profile.command(feature=w) for w in self.switched}
        if not self.profile.backward:
            steps["backward"] = self.profile.command(backward=True)
        rows = ", ".join("{%s, %s}" % (quote(w), quote(c)) for w, c in sorted(steps.items()))
        path = os.path.join(self.generated, "flash_api.cpp")
        write_if_changed(path, "\n".join(includes) + "\n" + ENTRY % (rows, quote(self.profile.words()), os.path.abspath(
            self.entry[0])))
        return path

    def order(self, sources):
        """Longest first: the build system starts them in this order, the gate keeps it."""
        for s in sources:
            self.expect.setdefault(unit_name(s), self.table["others"].get(unit_name(s)) or self.table["others"]["*"])
        return sorted(sources, key=lambda s: -self.expect[unit_name(s)][0])

    def describe(self, kept):
        p = self.profile
        self.record = {"profile": p.name, "dtypes": sorted({u.dtype for u in kept}), "backward": p.backward,
                       "head_dims": sorted({u.dim for u in kept}, key=int), "archs": self.job["archs"],
                       "features": "all" if p.features is None else p.held(),
                       "kernel_dims": self.kernel_dims, "even_dims": even_dims(p.release.entry, self.kernel_dims),
                       "defines": self.defines, "units": len(self.sources), "torch_free_kernels": self.shadow,
                       "divided": self.divided}


class Plan:
    """One unit: what it takes, and its parts. A part is the constants of its kernels that are settled; [{}]: all in one."""

    def __init__(self, work, unit):
        table, row = work.table, (work.job.get("expected") or {}).get(unit.name)
        self.unit, self.rows, self.template = unit, [{}], work.templates.get(unit.header)
        self.dead = work.dead(unit) if self.template else []
        off = {FEATURES[w][1]: w == "unevenk" for w in work.switched}
        text = self.template.text if self.template else ""
        self.kernels = launches.Kernels(text, unit.kind, unit.dim, unit.causal, off)
        everything = launches.Kernels(text, unit.kind, unit.dim, unit.causal, {}).count()
        self.peak = row[1] if row else table["usual_mib"]
        self.base = table["base_s"][unit.kind]
        rest = max(0, (row[0] if row else table["usual_s"]) - self.base - table["host_s"]) * (table["dead"] if self.dead else 1)
        lean = len([w for w in work.switched if w in EXTRAS]) / len(EXTRAS)
        self.each = rest / max(1, everything) * (1 - (1 - table["lean"][unit.kind]) * lean)
        if not self.template:
            self.base += table["host_s"]

    def seconds(self, row):
        return self.base + self.each * max(1, len(self.kernels.held(row)))

    def longest(self):
        return max(self.seconds(row) for row in self.rows)

    def finer(self, limit):
        """The rows with those divided that take longer; None if one of them cannot be."""
        rows = []
        for row in self.rows:
            halves = self.kernels.divided(row) if self.seconds(row) > limit else [row]
            if not halves:
                return None
            rows += halves
        return rows


def share_out(plans, cores, others):
    """Divides what takes longest, of those about alike all, and keeps the division with which the build ends first: one step alone may end
    later (17 parts on 16 cores), the next one earlier than before both. Finer ones must be worth it."""
    def ends():
        return makespan([p.seconds(row) for p in plans for row in p.rows] + others, cores)

    best, end = [p.rows for p in plans], ends()
    for alike in (0.98, 0.94, 0.9, 0.86) if cores > 1 else ():
        for p in plans:
            p.rows = [{}]
        while sum(len(p.rows) for p in plans) < 4 * cores:
            limit = alike * max(p.longest() for p in plans)
            finer = [p.finer(limit) for p in plans]
            if None in finer:
                break
            for p, rows in zip(plans, finer):
                p.rows = rows
            now = ends()
            if now < 0.98 * end:
                best, end = finer, now
    for p, rows in zip(plans, best):
        p.rows = rows


def makespan(seconds, cores):
    """When the last of them ends, longest first on so many cores."""
    ends = [0.0] * cores
    for s in sorted(seconds, reverse=True):
        k = ends.index(min(ends))
        ends[k] += s
    return max(ends)


def without_template(unit):
    """A unit's own text; the launch template is there already, in the form wanted."""
    return re.sub(r'#include\s+"flash_\w+_launch_template\.h"', "", without_comments(read(unit.source))).strip()


class Like:
    """A unit of another kind with the same dtype and head dim."""

    def __init__(self, unit, kind):
        self.kind, self.dim, self.dtype = kind, unit.dim, unit.dtype


SHADOW_CHECK = """static_assert(sizeof(at::PhiloxCudaState().offset_intragraph_) == sizeof(INTRAGRAPH) &&
              offsetof(at::PhiloxCudaState, offset_) == 8 && offsetof(at::PhiloxCudaState, offset_intragraph_) == 16 &&
              offsetof(at::PhiloxCudaState, captured_) == 16 + sizeof(INTRAGRAPH) &&
              sizeof(at::PhiloxCudaState) == (sizeof(INTRAGRAPH) == 4 ? 24 : 32),
              "this torch lays out PhiloxCudaState in another way than the kernels were compiled for");
extern "C" void fa_cuda_failed(int err, const char *file, const char *func, unsigned line) {
  C10_THROW_ERROR(Error, std::string("CUDA error: ") + cudaGetErrorString(static_cast<cudaError_t>(err)) + " (" + func + ", " +
                         file + ":" + std::to_string(line) + ")");
}
"""

DEVICE_CHECK = """static_assert(std::is_same<decltype(at::cuda::getCurrentDeviceProperties()), cudaDeviceProp *>::value,
              "this torch hands out device properties in another way than the kernels were compiled for");
"""

ENTRY = """
#include <string>
namespace fa_profile {
inline std::string say(std::string text) {
  static const struct { const char *word, *command; } steps[] = {%s};
  if (text.find("does not support") == std::string::npos || text.find("build") == std::string::npos) return text;
  text += std::string(" Built as profile: ") + %s + ".";
  for (const auto &s : steps)
    if (text.find(std::string("support ") + s.word) != std::string::npos) text += std::string(" To get it: ") + s.command;
  return text;
}
}
#undef TORCH_CHECK
#define TORCH_CHECK(cond, ...) \\
  do { if (!(cond)) C10_THROW_ERROR(Error, fa_profile::say(::c10::str("", ##__VA_ARGS__))); } while (0)
#include "%s"
"""
