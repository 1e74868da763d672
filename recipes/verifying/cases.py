"""Which cases are run. A case is a dict of plain values: it travels in JSON, and `--case JSON` runs it again. No torch here.

op: dense varlen qkvpacked kvpacked varlen_qkvpacked varlen_kvpacked kvcache dropout same long compile graph stream device"""

DTYPES = ("bf16", "fp16")


def case(op="dense", **what):
    c = {"op": op, "dtype": "bf16", "b": 2, "sq": 128, "sk": 128, "h": 4, "hk": 4, "d": 64}
    c.update(what)
    if "sk" not in what:
        c["sk"] = c["sq"]
    if "hk" not in what:
        c["hk"] = c["h"]
    return c


def name(c):
    """A name that says what is in it: "dense bf16 d128 113x203 h6/2 causal window 16,0 backward"."""
    words = [c["op"], c["dtype"], "d%d" % c["d"], "%dx%d" % (c["sq"], c["sk"])]
    words += ["b%d" % c["b"]] if c["b"] != 2 else []
    words += ["h%d/%d" % (c["h"], c["hk"])] if c["h"] != c["hk"] else []
    words += ["causal"] if c.get("causal") else []
    words += ["window %d,%d" % tuple(c["window"])] if c.get("window") else []
    words += ["%s %g" % (k, c[k]) for k in ("softcap", "dropout", "scale") if c.get(k)]
    words += ["alibi per batch"] if c.get("alibi") == "batch" else ["alibi"] if c.get("alibi") else []
    words += [k.replace("_", " ") for k in ("deterministic", "append", "rotary", "paged", "leftpad", "batch_idx", "strided", "lse",
                                            "inductor", "empty", "interleaved") if c.get(k)]
    words += ["splits %d" % c["splits"]] if c.get("splits") else []
    words += ["backward"] if c.get("backward") else []
    return " ".join(words)


def quick(line):
    """Both dtypes, the head dims most used, each feature once."""
    out = []
    for dtype in DTYPES:
        for causal in (False, True):
            out.append(case(dtype=dtype, d=128, sq=200, causal=causal, backward=True))
        out.append(case(dtype=dtype, d=64, sq=113, sk=203, h=6, hk=2, causal=True, backward=True))
    out += [
        case(d=128, sq=160, window=[16, 0], backward=True),
        case(d=128, sq=128, h=4, alibi="head", causal=True, backward=True),
        case(d=128, sq=128, softcap=5.0, backward=True),
        case(d=80, sq=97, backward=True),
        case("dropout", d=128, sq=256, sk=128, dropout=0.17, backward=True),
        case("varlen", d=128, sq=128, b=4, h=4, hk=2, causal=True, empty=True, backward=True),
        case("kvcache", d=128, sq=1, sk=512, h=8, hk=2, causal=True),
        case("same", d=128, sq=256, causal=True, deterministic=True, backward=True),
    ]
    return usable(line, out)


def normal(line):
    out = quick(line)
    dims = line.spec["head_dims"]
    for dtype in DTYPES:
        for d in dims:
            for causal in (False, True):
                out.append(case(dtype=dtype, d=d, sq=113, sk=203, causal=causal, backward=True))
        for d in (40, 59, 111, 160, 224):
            out.append(case(dtype=dtype, d=d, sq=108, sk=256, causal=True, backward=True))
    for d in (64, 128):
        out += features(d)
    out += variants(128) + caches(128) + whole_program(128)
    return usable(line, unique(out))


def full(line):
    """Everything with everything: 300 and more."""
    out = normal(line)
    lengths = [(1, 239), (3, 799), (113, 211), (127, 512), (256, 512), (1023, 1024), (512, 256), (239, 1)]
    for dtype in DTYPES:
        for d in line.spec["head_dims"] + [48, 88, 120]:
            for i, (sq, sk) in enumerate(lengths):
                out.append(case(dtype=dtype, d=d, sq=sq, sk=sk, h=6, hk=(6, 2, 1)[i % 3], causal=i % 2 == 0, backward=True))
        for d in (32, 96, 192, 256):
            out += [dict(c, dtype=dtype) for c in features(d)]
        out += [dict(c, dtype=dtype) for d in (64, 128, 256) for c in variants(d) + caches(d)]
        for w in ([0, 0], [1, 1], [31, 0], [64, 64], [-1, 17], [17, -1], [300, 0]):
            out.append(case(dtype=dtype, d=128, sq=161, sk=257, window=w, backward=True))
    out += [case("compile", d=128, sq=128, causal=True, inductor=True, backward=True),
            case("long", d=128, b=1, sq=131072, h=1, causal=True),
            case("long", d=64, b=1, sq=65536, h=2),
            case("long", d=128, b=1, sq=140000, h=128, hk=128, causal=True)]   # more than 2^31 numbers in one tensor
    return usable(line, unique(out + grid(line, 320 - len(usable(line, unique(out))))))


def grid(line, wanted):
    """For a build of few dtypes and head dims: more lengths, heads and odd head dims of those that it has."""
    out = []
    for sq, sk in [(64, 64), (65, 129), (97, 31), (128, 384), (200, 200), (255, 257), (513, 320), (1, 77), (31, 640), (384, 511)]:
        for off in (0, 8, 3, 24, 17):
            for h, hk in ((4, 4), (6, 2), (5, 1)):
                for causal in (False, True):
                    for dtype in DTYPES:
                        for d in line.spec["head_dims"]:
                            c = case(dtype=dtype, d=d - off, sq=sq, sk=sk, h=h, hk=hk, causal=causal, b=1 + off % 2)
                            c["backward"] = not line.lack(dict(c, backward=True))
                            if not line.lack(c) and len(out) < wanted:
                                out.append(c)
    return out


def features(d):
    return [
        case(d=d, sq=128, sk=217, h=6, hk=2, backward=True),
        case(d=d, sq=128, sk=217, h=6, hk=1, causal=True, backward=True),
        case(d=d, sq=217, sk=128, causal=True, backward=True),   # the first queries see nothing
        case(d=d, sq=203, window=[16, 0], backward=True),
        case(d=d, sq=203, window=[20, 11], h=6, hk=2, backward=True),
        case(d=d, sq=113, sk=203, window=[33, 0], causal=True, backward=True),
        case(d=d, sq=128, sk=203, alibi="head", causal=True, backward=True),
        case(d=d, sq=128, alibi="batch", h=6, hk=2, backward=True),
        case(d=d, sq=128, sk=203, softcap=5.0, causal=True, backward=True),
        case(d=d, sq=160, softcap=15.0, h=6, hk=2, window=[32, 0], backward=True),
        case(d=d, sq=160, scale=0.3, backward=True),
        case(d=d, sq=128, strided=True, causal=True, backward=True),
        case("dropout", d=d, sq=256, sk=d, dropout=0.17, backward=True),
        case("dropout", d=d, sq=192, sk=d, dropout=0.5, causal=True, backward=True),
        case("same", d=d, sq=384, causal=True, deterministic=True, backward=True),
        case("same", d=d, sq=384, h=6, hk=2, deterministic=True, backward=True),
        case(d=d, sq=113, lse=True, causal=True),
    ]


def variants(d):
    return [
        case("varlen", d=d, b=5, sq=150, h=6, hk=2, causal=True, backward=True),
        case("varlen", d=d, b=5, sq=150, empty=True, backward=True),
        case("varlen", d=d, b=3, sq=1, sk=300, h=6, hk=1, causal=True),
        case("varlen", d=d, b=4, sq=200, window=[24, 0], backward=True),
        case("varlen", d=d, b=3, sq=100, sk=600, h=4, hk=2, causal=True, paged=True),
        case("qkvpacked", d=d, sq=160, causal=True, backward=True),
        case("kvpacked", d=d, sq=96, sk=160, h=6, hk=2, causal=True, backward=True),
        case("varlen_qkvpacked", d=d, b=4, sq=130, causal=True, backward=True),
        case("varlen_kvpacked", d=d, b=4, sq=130, h=6, hk=2, backward=True),
    ]


def caches(d):
    return [
        case("kvcache", d=d, sq=1, sk=1024, b=3, h=8, hk=2, causal=True),
        case("kvcache", d=d, sq=1, sk=700, b=3, h=8, hk=8, causal=True, splits=4),
        case("kvcache", d=d, sq=5, sk=512, b=3, h=6, hk=2, causal=True, append=True),
        case("kvcache", d=d, sq=3, sk=512, b=3, h=6, hk=2, causal=True, append=True, rotary=True),
        case("kvcache", d=d, sq=3, sk=512, b=3, h=6, hk=6, causal=True, append=True, rotary=True, interleaved=True),
        case("kvcache", d=d, sq=1, sk=1024, b=3, h=8, hk=2, causal=True, paged=True),
        case("kvcache", d=d, sq=4, sk=1024, b=3, h=8, hk=2, causal=True, paged=True, append=True),
        case("kvcache", d=d, sq=2, sk=512, b=3, h=6, hk=2, causal=True, batch_idx=True),
        case("kvcache", d=d, sq=1, sk=512, b=3, h=6, hk=2, window=[64, 0], causal=True),
        case("kvcache", d=d, sq=2, sk=512, b=3, h=6, hk=2, causal=True, alibi="head"),
    ]


def whole_program(d):
    return [
        case("long", d=d, b=1, sq=32768, h=2, causal=True),
        case("long", d=d, b=1, sq=16384, h=2),
        case("compile", d=d, sq=128, causal=True, backward=True),
        case("graph", d=d, sq=256, causal=True),
        case("stream", d=d, sq=256, causal=True),
        case("device", d=d, sq=128, causal=True),
    ]


def few(line, mode):
    """For a line that compiles each shape class when it is first used: two to six seconds a case."""
    out = [case(d=128, sq=200, backward=True), case(d=128, sq=200, causal=True, backward=True),
           case(d=64, sq=113, sk=203, h=6, hk=2, causal=True, backward=True), case(dtype="fp16", d=128, sq=200, causal=True),
           case("varlen", d=128, b=4, sq=128, causal=True, backward=True), case(d=128, sq=160, window=[16, 0])]
    if mode == "full":
        out += [case(d=128, sq=217, sk=128, causal=True, backward=True), case(d=128, sq=160, softcap=5.0), case(d=128, sq=160, scale=0.3),
                case(d=128, sq=128, h=6, hk=1, strided=True, causal=True, backward=True), case(d=128, sq=113, lse=True, causal=True),
                case("same", d=128, sq=384, causal=True, deterministic=True, backward=True),
                case("varlen", d=128, b=3, sq=100, sk=600, h=4, hk=2, causal=True, paged=True),
                case("varlen", d=128, b=5, sq=150, h=6, hk=2, empty=True), case("long", d=128, b=1, sq=32768, h=2, causal=True),
                case("graph", d=128, sq=256, causal=True), case("stream", d=128, sq=256, causal=True)]
    return usable(line, out)


def unique(cases):
    seen, out = set(), []
    for c in cases:
        if name(c) not in seen:
            seen.add(name(c))
            out.append(c)
    return out


def needs(c):
    """Words for Line.takes()."""
    return [w for w in ("alibi", "softcap", "window", "deterministic", "lse") if c.get(w)] + (
        ["dropout"] if c.get("dropout") else []) + (["varlen"] if c["op"].startswith("varlen") else []) + (
        ["kvcache"] if c["op"] == "kvcache" else [])


def usable(line, cases):
    """Cases that this release can be asked: its functions take the arguments, its kernels the head dim. Of cases that the
    build says to have left out, one for each thing left out stays: it must be refused in words."""
    out, refused = [], set()
    for c in cases:
        if not all(line.takes(w) for w in needs(c)):
            continue
        if c["op"] in line.packed and line.packed[c["op"]] is None:
            continue
        if not line.kernel_dim(c["d"]) or (c["d"] not in line.spec["head_dims"] and not line.spec["any_head_dim"]):
            continue
        if c["d"] % line.spec.get("multiple", 1):
            continue
        if c["op"] == "kvcache" and (c["d"] % 8 or c.get("alibi") and line.name != "fa2" or c.get("leftpad")):
            continue
        if line.lack(c) == "backward":   # the forward pass of it must still be right
            if "backward" not in refused:
                out.append(c)
            refused.add("backward")
            c = {k: v for k, v in c.items() if k not in ("backward",)}
        word = line.lack(c)
        if word in refused:
            continue
        if word:
            refused.add(word)
        out.append(c)
    return unique(out)


def smaller(case):
    """Simpler cases of the same kind, for finding the simplest that still goes wrong."""
    for key in ("softcap", "alibi", "window", "scale", "strided", "deterministic", "rotary", "paged", "batch_idx", "empty", "lse",
                "causal", "backward"):
        if case.get(key):
            yield {k: v for k, v in case.items() if k != key}
    if case["h"] != 1 or case["hk"] != 1:
        yield dict(case, h=max(1, case["h"] // case["hk"]), hk=1) if case["hk"] != 1 else dict(case, h=1, hk=1)
    if case["b"] > 1:
        yield dict(case, b=1)
    for key in ("sq", "sk"):
        if case[key] > 16 and case["op"] in ("dense", "varlen"):
            yield dict(case, **{key: case[key] // 2})
