"""Features that a release can be built without, read from its text.

A switch is a define that the kernels and the C++ entry file know. Given to kernels alone it would make results silently wrong, so
one counts only where both sides honour it: static_switch.h settles the kernels' constant, and every function that Python can call
passes a check of the same define."""

import glob
import os
import re

# word -> (of the define FLASHATTENTION_DISABLE_…, the kernels' constant)
FEATURES = {"dropout": ("DROPOUT", "Is_dropout"), "alibi": ("ALIBI", "Has_alibi"), "softcap": ("SOFTCAP", "Is_softcap"),
            "local": ("LOCAL", "Is_local"), "unevenk": ("UNEVEN_K", "IsEvenKConst")}
ROUNDED = re.compile(r"head_size_rounded = ([^;]+);")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def plain(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        return without_comments(f.read())


def functions(text):
    """name -> text of each function that is defined at the start of a line."""
    heads = list(re.finditer(r"^[A-Za-z_][\w:<>,&*\s]*?\b(\w+)\s*\([^;{]*?\)\s*\{", text, flags=re.M))
    ends = [m.start() for m in heads[1:]] + [len(text)]
    return {m[1]: text[m.start():end] for m, end in zip(heads, ends)}


def calls(all_functions, name, goals, seen=()):
    """Is one of `goals` called from `name`, through however many others?"""
    if name in goals:
        return True
    inner = [f for f in all_functions if f != name and f not in seen and re.search(r"\b%s\s*\(" % f, all_functions[name])]
    return any(calls(all_functions, f, goals, seen + (name,)) for f in inner)


def rounded(text, d):
    """What an entry file makes of head dim d, by the text of its expression; 0: an expression not known."""
    plain_form = re.fullmatch(r"round_multiple\(head_size, (\d+)\)", text)
    steps = re.fullmatch(r"round_multiple\(head_size, head_size <= (\d+) \? (\d+) : (\d+)\)", text)
    capped = re.fullmatch(r"head_size <= (\d+) \? round_multiple\(head_size, (\d+)\) : (\d+)", text)
    if capped and d > int(capped[1]):
        return int(capped[3])
    step = int(plain_form[1] if plain_form else capped[2] if capped else steps[2 if d <= int(steps[1]) else 3] if steps else 0)
    return (d + step - 1) // step * step if step else 0


def rounded_dims_have_kernels(entry, dims):
    """Without uneven K the entry file lets a head dim pass that equals its rounded one: a kernel must be of that very size, for
    the next larger one would read past the end."""
    texts = {" ".join(t.split()) for t in ROUNDED.findall(entry)}
    return bool(texts) and all(rounded(t, d) and (rounded(t, d) != d or d in dims) for t in texts for d in range(8, 257, 8))


def even_dims(entry, dims):
    """Head dims that the entry file lets pass without uneven K."""
    texts = {" ".join(t.split()) for t in ROUNDED.findall(entry)}
    return [d for d in sorted(dims) if all(rounded(t, d) == d for t in texts)]


class Switches:
    """Of an unpacked release: `has` its features, `off` those that it can be built without, `stay` the others."""

    def __init__(self, source):
        folder = os.path.join(source, "csrc/flash_attn")
        src = os.path.join(folder, "src")
        templates = " ".join(plain(p) for p in sorted(glob.glob(os.path.join(src, "*launch_template.h"))))
        self.entry, self.kernels = plain(os.path.join(folder, "flash_api.cpp")), plain(os.path.join(src, "static_switch.h"))
        self.functions = functions(self.entry)
        self.called = re.findall(r'm\.def\("\w+",\s*&(?:\w+::)?(\w+)', self.entry)
        self.dims = {int(d) for name in os.listdir(src) for d in re.findall(r"_hdim(\d+)_", name)} if os.path.isdir(src) else set()
        self.has = [w for w, (_, constant) in FEATURES.items() if re.search(r"\b%s\b" % constant, templates)]
        self.off = [w for w in self.has if self.honoured(w)]
        self.stay = [w for w in self.has if w not in self.off]

    def honoured(self, word):
        define = "FLASHATTENTION_DISABLE_" + FEATURES[word][0]
        checks = [f for f, text in self.functions.items() if re.search(r"#ifdef %s\s+TORCH_CHECK\(" % define, text)]
        settled = re.search(r"#ifdef %s\s+#define \w+\(" % define, self.kernels)
        if not settled or not checks or not self.called or not all(calls(self.functions, f, checks) for f in self.called):
            return False
        return word != "unevenk" or rounded_dims_have_kernels(self.entry, self.dims)

    def backward_off(self):
        """Do both backward functions refuse, before anything else is asked of them?"""
        mine = [self.functions[f] for f in self.called if "bwd" in f]
        return bool(mine) and all(re.search(r"#ifdef FLASHATTENTION_DISABLE_BACKWARD\s+TORCH_CHECK\(false", t) for t in mine)
