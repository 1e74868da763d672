"""agreement.py FILE.jsonl: upstream's benchmark beside our own harness, a line for each shape, from the lines of verify.py --upstream."""

import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = [json.loads(x) for x in f if x.startswith("{")]
    figures = next((r for r in rows if r["kind"] == "figures"), {}).get("upstream", {})
    print("%-34s %28s %28s %28s" % ("fp16, TFLOP/s: upstream, here", "forward", "backward", "both"))
    for r in figures.get("agreement", []):
        cells = ["%9.1f %9.1f %8.3f" % (r[k]["upstream"], r[k]["here"], r[k]["ratio"]) if k in r else "" for k in ("forward", "backward", "both")]
        print("d%-4d %3d x %6d %-15s %28s %28s %28s" % (r["d"], r["b"], r["s"], "causal" if r["causal"] else "", *cells))
    ratios = sorted(abs(r[k]["ratio"] - 1) for r in figures.get("agreement", []) for k in ("forward", "backward", "both") if k in r)
    if ratios:
        print("largest difference %.1f %%, half of them within %.1f %%" % (100 * ratios[-1], 100 * ratios[len(ratios) // 2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
