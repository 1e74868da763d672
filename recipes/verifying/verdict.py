"""The sentence about speed, from the rows that were measured. No torch here."""


def times(x):
    return "%.1f x" % x if x < 10 else "%.0f x" % x


def mib(x):
    return format(round(x), ",")


def best_sdpa(rows, direction):
    found = [r for r in rows if r["what"].startswith("SDPA") and r["direction"] == direction]
    return min(found, key=lambda r: r["ms"]) if found else None


def row(rows, what, direction):
    return next((r for r in rows if r["what"] == what and r["direction"] == direction), None)


def main_measurement(measured):
    """The longest one that standard attention was measured at too, not causal first; else the longest."""
    def rank(m):
        std = any(r["what"] == "standard" for r in m["rows"])
        c = m["shape"]
        return (std, not c["causal"], c["sq"] <= 8192, c["sq"])
    return max(measured, key=rank) if measured else None


def sentence(title, measured, card):
    m = main_measurement(measured)
    if m is None:
        return ""
    mine = row(m["rows"], title, "forward")
    std, sdpa = row(m["rows"], "standard", "forward"), best_sdpa(m["rows"], "forward")
    parts = []
    if std:
        parts.append("%s as fast as standard attention, %s MiB instead of %s" % (times(std["ms"] / mine["ms"]), mib(mine["mib"]), mib(std["mib"])))
    else:
        parts.append("%.0f TFLOP/s, %s MiB; standard attention does not fit this card's free memory" % (mine["tflops"], mib(mine["mib"])))
    if sdpa:
        ratio = mine["ms"] / sdpa["ms"]
        if ratio > 1.05:
            parts.append("torch's own %s is %s as fast on this card" % (sdpa["what"], times(ratio)))
        elif ratio < 0.95:
            parts.append("%s as fast as torch's own %s" % (times(1 / ratio), sdpa["what"]))
        else:
            parts.append("on a par with torch's own %s" % sdpa["what"])
    if card and card.get("matmul_tflops"):
        parts.append("%.0f %% of this card's matmul" % (100 * mine["tflops"] / card["matmul_tflops"]))
    return "; ".join(parts)


def figures(title, measured, card, decode):
    """What the wizard and the report draw: one flat list."""
    out = []
    for m in measured:
        for r in m["rows"]:
            share = 100 * r["tflops"] / card["matmul_tflops"] if card and card.get("matmul_tflops") else None
            out.append(dict(r, shape={k: m["shape"][k] for k in ("dtype", "b", "sq", "h", "d", "causal")}, share_of_matmul=share))
    for r in decode or ():
        share = 100 * r["gbs"] / card["copy_gbs"] if card and card.get("copy_gbs") else None
        out.append(dict(r, share_of_copy=share))
    return out
