"""Reads a release's launch templates: which kernels a unit holds, how they may be divided, and the two texts into which a template is taken
apart. The launcher is host code that starts kernels it does not hold; a part is kernels for the device without the code that starts them.

A kernel is chosen by nested switches (BOOL_SWITCH(condition, CONSTANT, …)); each makes a condition of the call a constant of the template.
A part settles some of the constants; halves of a part hold together what it holds."""

import itertools
import re

from switches import without_comments

SWITCH = re.compile(r"\b(\w+_SWITCH)\(((?:[^,()]|\((?:[^()]|\([^()]*\))*\))+),\s*(\w+),")
KERNEL = {"fwd": r"flash_fwd_kernel", "fwd_split": r"flash_fwd_splitkv_kernel", "bwd": r"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"}
DEFINED = re.compile(r"^[ \t]*(?:DEFINE_FLASH\w*_KERNEL\([^)]*\)|__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?\w+\s*\([^)]*\))\s*\{",
                     re.M)
BODY = re.compile(r"^(?!\s*#).*?(?:__global__[^;{]*|\bDEFINE_\w+\([^)]*\)\s*)\{", re.M)
STARTED = re.compile(r"(\b\w+(?:\s*<[^;{}]*?>)?)\s*<<<([^;]*?)>>>\s*\(([^;]*)\);")
PLAIN = re.compile(r"[\w\s&|!<>=(),:]*")  # words and operators: nothing that reaches into an object
DIRECT = re.compile(r"\b\w+\s*<[^;{}]*>\s*<<<[^;]*?>>>\s*\([^;]*\);")


def top_level(text):
    """The words between commas, commas within brackets aside."""
    words, depth, word = [], 0, ""
    for c in text:
        depth += (c in "(<[{") - (c in ")>]}")
        if c == "," and depth == 0:
            words.append(word.strip())
            word = ""
        else:
            word += c
    return words + [word.strip()]


class Kernels:
    """The kernels of one unit. `constants` maps each constant that chooses among them to its switch; `mixtures` each mixture of constants to
    the kernel that it ends at; `always`: constants of which one side leads to every kernel, settled in each part. Empty where the text is not of
    the kind that is known."""

    def __init__(self, text, kind, dim, causal, off):
        self.constants, self.mixtures, self.always = {}, {}, {}
        text = without_comments(text)
        m = re.search(r"auto\s+kernel\s*=\s*&\s*%s\s*<([^;]*)>\s*;" % KERNEL[kind], text)
        if not m or not PLAIN.fullmatch(m[1]):
            return
        arguments = " ".join(m[1].split())
        begin = max([f.start() for f in re.finditer(r"^template\s*<", text[:m.start()], flags=re.M)] or [0])
        found = {name: macro for macro, _, name in SWITCH.findall(text[begin:m.start()])}
        if re.search(r"\bIs_dropout\b", arguments):
            outer = {name: macro for macro, _, name in SWITCH.findall(text)}
            found.setdefault("Is_dropout", outer.get("Is_dropout", "BOOL_SWITCH"))
        # a constant that other kernels of the unit depend on too cannot be settled for one part
        shared = " ".join(DIRECT.findall(text[m.end():text.find("\n}", m.end())]))
        known = {"Is_causal": causal, "true": True, "false": False, "kHeadDim": int(dim), "Headdim": int(dim)}
        free = [c for c in found if c not in off]
        try:
            code = compile(expression(top_level(arguments)[1:]), "template arguments", "eval")
            for values in itertools.product((False, True), repeat=len(free)):
                row = dict(zip(free, values))
                self.mixtures[tuple(row.items())] = eval(code, {"__builtins__": {}}, {**known, **off, **row})  # noqa: S307
        except (SyntaxError, NameError, TypeError):
            self.mixtures = {}
            return
        self.constants = {c: found[c] for c in free if not re.search(r"\b%s\b" % c, shared)}
        everything = self.held({})
        for row in ({c: side} for c in reversed(list(self.constants)) for side in (False, True)):
            if self.held({**self.always, **row}) == everything:
                self.always = {**row, **self.always}

    def held(self, row):
        """The kernels of a part."""
        row = {**self.always, **row}
        return {kernel for mixture, kernel in self.mixtures.items() if row.items() <= dict(mixture).items()}

    def count(self):
        return len(self.held({}))

    def divided(self, row):
        """The two halves of a part that bring its longer half down most, twice compiled kernels counted; [] if none does."""
        best, whole = [], len(self.held(row))
        lowest = (whole, 0)
        for c in self.constants:
            if c in row:
                continue
            halves = [{**row, c: False}, {**row, c: True}]
            sizes = [len(self.held(h)) for h in halves]
            if min(sizes) and (max(sizes), sum(sizes)) < lowest and max(sizes) < whole:
                lowest, best = (max(sizes), sum(sizes)), halves
        return best


def expression(arguments):
    """C++ template arguments as a Python tuple."""
    text = "(" + ", ".join(arguments) + ",)"
    text = re.sub(r"\b\w+::", "", text).replace("&&", " and ").replace("||", " or ")
    return re.sub(r"!(?!=)", " not ", text)


def body_end(text, at):
    """The place behind the brace that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i + 1
    raise ValueError("braces do not match")


def declared_only(text):
    """Kernels are declared, not defined."""
    out, at = "", 0
    for m in iter(lambda: DEFINED.search(text, at), None):
        out += text[at:m.end() - 1].rstrip() + ";"
        at = body_end(text, m.end() - 1)
    return out + text[at:]


def launcher(text):
    """The template without the kernels: it starts them by their address. None where not every kernel and start is of a known form."""
    text = declared_only(without_comments(text).replace("#pragma once", ""))
    text = STARTED.sub(lambda m: "fa_launch(%s, %s, %s);" % (m[1], ", ".join(setup(m[2])), m[3]), text)
    return None if "<<<" in text or "fa_launch(" not in text or BODY.search(text) else text


def setup(text):
    """grid, block, shared memory, stream: the last two may be left out."""
    words = top_level(text)
    return words + ["0"] * (4 - len(words))


class Template:
    """A launch template that can be taken apart."""

    def __init__(self, text):
        self.text, self.launcher = text, launcher(text)
        self.switches = {name: macro for macro, _, name in SWITCH.findall(without_comments(text))}

    def part(self, first):
        """The template for the device alone. Kernels that no switch chooses are in the first part."""
        text = without_comments(self.text).replace("#pragma once", "")
        return text if first else DIRECT.sub(";", text)

    def settled(self, row):
        """Macros under which a switch of a settled constant compiles one side only."""
        if not row:
            return []
        out = ["#define FA_ONLY(COND, VALUE, NAME, ...) [&] { constexpr static bool NAME = VALUE; return __VA_ARGS__(); }()",
               "#define FA_BOTH(COND, NAME, ...) [&] { if (COND) { constexpr static bool NAME = true; return __VA_ARGS__(); } "
               "else { constexpr static bool NAME = false; return __VA_ARGS__(); } }()",
               "#undef BOOL_SWITCH", "#define BOOL_SWITCH(COND, NAME, ...) FA_SWITCH_##NAME(COND, NAME, __VA_ARGS__)"]
        for constant, macro in self.switches.items():
            side = "FA_BOTH(COND, NAME, __VA_ARGS__)"
            if constant in row:
                side = "FA_ONLY(COND, %s, NAME, __VA_ARGS__)" % str(row[constant]).lower()
                if macro != "BOOL_SWITCH":
                    out += ["#undef " + macro, "#define %s(COND, NAME, ...) %s" % (macro, side)]
            out.append("#define FA_SWITCH_%s(COND, NAME, ...) %s" % (constant, side))
        return out


LAUNCH = """template <typename T> struct fa_same { using type = T; };
template <typename... P>
void fa_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream, typename fa_same<P>::type... values) {
  void *list[] = {const_cast<void *>(static_cast<const void *>(&values))...};
  cudaLaunchKernel(reinterpret_cast<const void *>(kernel), grid, block, list, shared, stream);
}
"""
