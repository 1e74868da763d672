"""The lines of Flash-Attention behind one interface: where a line is imported from, what its functions are called, what their
arguments are called, what a build of it lacks. No torch here."""

import importlib
import importlib.metadata
import inspect
import json
import re

LINES = {
    "fa2": {
        "title": "FA2",
        "packages": ["flash-attn"],
        "modules": ["flash_attn"],
        "extensions": ["flash_attn_2_cuda"],
        "dtypes": ["fp16", "bf16"],
        "head_dims": [32, 64, 96, 128, 192, 256],
        "any_head_dim": True,   # smaller ones are padded up to the next
    },
    "fa3": {
        "title": "FA3",
        "packages": ["flash-attn-3", "tokenspeed-fa3", "fa3-fwd"],
        "modules": ["flash_attn_interface", "flash_attn_3.flash_attn_interface", "fa3_fwd_interface"],
        "configs": ["flash_attn_config", "flash_attn_3.flash_attn_config", "fa3_fwd_config"],
        "extensions": ["flash_attn_3._C", "fa3_fwd._C"],
        "dtypes": ["fp16", "bf16"],
        "head_dims": [64, 96, 128, 192, 256],
        "any_head_dim": True,
        "multiple": 8,
    },
    "fa4": {
        "title": "FA4",
        "packages": ["flash-attn-4"],
        "modules": ["flash_attn.cute"],
        "extensions": [],
        "dtypes": ["fp16", "bf16"],
        "head_dims": [64, 128],
        "any_head_dim": False,
        "compiles_at_first_use": True,   # seconds for each new shape class: few cases
        "no_window": (None, None),
    },
}

# What a build says about a thing that was left out of it. Anything else that is raised is a fault.
HONEST = re.compile(r"built without|does not support|do not support|don't support|not supported|only supports?|compiled without|"
                    r"not compiled|not implemented|must be (?:at most|less than)", re.I)


class NotThere(Exception):
    """The line is not in this environment: a sentence."""


def installed(line):
    """The distribution that brings this line, None when there is none."""
    for name in LINES[line]["packages"]:
        try:
            return importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def profile_of(dist):
    """What a build of ours says it holds (fainstall.json in dist-info); None: a whole build, or another's."""
    text = dist.read_text("fainstall.json") if dist is not None else None
    if not text:
        return None
    p = json.loads(text)
    features = p.get("features", "all")
    if p.get("back_end") == "ck":   # it has no softcap, whatever was built, and no switch for the others
        features = (["dropout", "alibi", "split"] if features == "all" else list(features)) + ["local", "unevenk"]
    return {"name": p.get("profile", ""), "back_end": p.get("back_end", ""), "dtypes": p.get("dtypes") or [], "backward": bool(p.get("backward", True)),
            "head_dims": [int(d) for d in p.get("head_dims") or []], "each_dim": p.get("back_end") != "ck",
            "kernel_dims": p.get("kernel_dims"), "even_dims": p.get("even_dims"),
            "features": None if features == "all" else list(features)}


def profile_of_fa3(names):
    """FA3's own note of its build flags: {'FLASHATTENTION_DISABLE_BACKWARD': True, …}."""
    for name in names:
        try:
            flags = importlib.import_module(name).CONFIG["build_flags"]
        except (ImportError, AttributeError, KeyError, TypeError):
            continue
        off = {k.split("DISABLE_", 1)[1] for k, v in flags.items() if "DISABLE_" in k and v}
        dims = [d for d in LINES["fa3"]["head_dims"] if "HDIM%d" % d not in off]
        features = [f for f, word in (("local", "LOCAL"), ("softcap", "SOFTCAP"), ("varlen", "VARLEN"), ("paged", "PAGEDKV"),
                                      ("append", "APPENDKV"), ("split", "SPLIT")) if word not in off]
        return {"name": "its own build flags", "dtypes": ["bf16"] + ([] if "FP16" in off else ["fp16"]),
                "backward": "BACKWARD" not in off, "head_dims": dims, "features": features + ["unevenk"]}
    return None


def kernel_dim(line, d, dims=None):
    """The head dim of the kernel that serves d; 0: none."""
    return next((k for k in dims or LINES[line]["head_dims"] if k >= d), 0)


def lack(line, profile, case):
    """What a build of this profile left out that the case needs: a word or two; "" when it has all."""
    if profile is None:
        return ""
    have = profile["features"]
    if profile["dtypes"] and case["dtype"] not in profile["dtypes"]:
        return case["dtype"]
    ck = profile.get("back_end") == "ck"
    if (line == "fa3" or ck) and not profile.get("each_dim"):   # upstream's switches: the next larger kernel serves it
        if profile["head_dims"] and case["d"] > max(profile["head_dims"]):
            return "head dim %d" % case["d"]
    elif profile["head_dims"] and kernel_dim(line, case["d"], profile.get("kernel_dims")) not in profile["head_dims"]:
        return "head dim %d" % kernel_dim(line, case["d"], profile.get("kernel_dims"))
    if case.get("backward") and not profile["backward"]:
        return "backward"
    if have is None:
        return ""
    wants = {"dropout": case.get("dropout"), "alibi": case.get("alibi"), "softcap": case.get("softcap"),
             "local": case.get("window"), "unevenk": case["d"] not in (profile.get("even_dims") or LINES[line]["head_dims"]),
             "split": case.get("op") == "kvcache" and (case.get("append") or case.get("paged") or case.get("batch_idx"))}
    if ck:   # its cache runs on the split kernels, whatever is asked of it
        wants["split"] = case.get("op") == "kvcache" or case.get("paged")
    if line == "fa3":
        for word in ("dropout", "alibi", "split", "unevenk"):   # it has none, chooses by itself, or always serves it
            wants.pop(word)
        wants.update(varlen="varlen" in case.get("op", "") or case.get("op") == "kvcache", paged=case.get("paged"),
                     append=case.get("append"))
    return next((f for f, wanted in wants.items() if wanted and f not in have), "")


class Line:
    """One line, imported. `api` holds what its functions take; `profile` what its build holds (None: everything)."""

    def __init__(self, name):
        spec = LINES[name]
        self.name, self.spec, self.title = name, spec, spec["title"]
        self.module = self.find(spec["modules"])
        dist = installed(name)
        self.version = dist.version if dist else getattr(self.module, "__version__", "")
        self.dense = self.module.flash_attn_func
        self.varlen = getattr(self.module, "flash_attn_varlen_func", None)
        self.kvcache = getattr(self.module, "flash_attn_with_kvcache", None)
        self.packed = {k: getattr(self.module, "flash_attn_%s_func" % k, None)
                       for k in ("qkvpacked", "kvpacked", "varlen_qkvpacked", "varlen_kvpacked")}
        self.no_window = spec.get("no_window", (-1, -1))
        self.profile = profile_of(dist)
        if self.profile is None and spec.get("configs"):
            self.profile = profile_of_fa3(spec["configs"])
        # FA3 gives it under several names; its own tests compare it, these do not.
        self.lse_keyword = next((k for n, k in (("fa2", "return_attn_probs"), ("fa4", "return_lse")) if n == name and k in
                                 self.arguments(self.dense)), "")
        self.api = {f: f in self.arguments(self.dense) for f in
                    ("dropout_p", "alibi_slopes", "softcap", "window_size", "deterministic", "return_attn_probs")}

    @staticmethod
    def find(names):
        last = None
        for name in names:
            try:
                return importlib.import_module(name)
            except ModuleNotFoundError as e:
                if e.name != name and not name.startswith(str(e.name) + "."):
                    raise   # the package is there; something that it imports is not
                last = e
        raise NotThere(str(last))

    @staticmethod
    def arguments(function):
        try:
            return set(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            return set()

    def takes(self, feature):
        """May a case use this feature at all, by the signatures of this release?"""
        return {"alibi": self.api["alibi_slopes"], "softcap": self.api["softcap"], "window": self.api["window_size"],
                "dropout": self.api["dropout_p"], "deterministic": self.api["deterministic"],
                "lse": self.lse_keyword != "",
                "varlen": self.varlen is not None, "kvcache": self.kvcache is not None}.get(feature, True)

    def absent(self):
        """In words: what this line does not have at all, so that no case of it is run."""
        words = {"dropout": "dropout", "alibi": "ALiBi", "softcap": "softcap", "window": "windows", "deterministic": "a deterministic backward",
                 "varlen": "ragged batches", "kvcache": "a KV cache"}
        return [words[f] for f in words if not self.takes(f)] + ["packed forms"] * (not any(self.packed.values()))

    def keywords(self, case, alibi=None):
        """The arguments of a case by the names that this line gives them; unused ones are left out."""
        kw = {"causal": bool(case.get("causal"))}
        if case.get("window"):
            left, right = case["window"]
            kw["window_size"] = tuple(self.no_window[i] if w < 0 else w for i, w in enumerate((left, right)))
        for key, name in (("softcap", "softcap"), ("scale", "softmax_scale"), ("dropout", "dropout_p")):
            if case.get(key):
                kw[name] = case[key]
        if alibi is not None:
            kw["alibi_slopes"] = alibi
        if case.get("deterministic"):
            kw["deterministic"] = True
        return kw

    @staticmethod
    def first(result):
        """Some releases return (out, lse), some out alone."""
        return result[0] if isinstance(result, (tuple, list)) else result

    def kernel_dim(self, d):
        return kernel_dim(self.name, d)

    def lack(self, case):
        return lack(self.name, self.profile, case)
