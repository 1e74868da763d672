"""summary.py FILE.jsonl: what verify.py or roofline found, in a few lines."""

import json
import sys


def main():
    rows = []
    with open(sys.argv[1], encoding="utf-8") as f:
        for line in f:
            try:
                rows.append(json.loads(line))
            except ValueError:
                print("not JSON: %s" % line.strip()[:160])
    for r in rows:
        kind = r.get("kind")
        if kind is None and "what" in r:
            print(json.dumps(r))
        elif kind == "stage" and r["status"] != "begin":
            print("%-8s %-12s %6.1f s  %s" % (r["status"], r["id"], r["seconds"], r["text"][:300]))
        elif kind == "check" and r["status"] in ("failed", "not_run"):
            print("  %s %s/%s: %s%s" % (r["status"], r["stage"], r["id"], r["text"][:300], "  smallest: %s" % json.dumps(
                r["data"]["shrunk"]) if (r.get("data") or {}).get("shrunk") else ""))
        elif kind in ("warning", "note", "verdict", "done"):
            print("%s: %s" % (kind, r["text"]))
        elif kind == "figures":
            for x in r["rows"]:
                s = x.get("shape") or {}
                print("  %-22s %-8s %s d%s b%s s%s%s: %8.3f ms [%.3f, %.3f] %s" % (
                    x["what"], x["direction"], s.get("dtype", ""), s.get("d", ""), s.get("b", ""), s.get("sq", ""),
                    " causal" if s.get("causal") else "", x["ms"], x["low"], x["high"],
                    "%.0f GB/s" % x["gbs"] if "gbs" in x else "%.0f TFLOP/s, %.0f MiB" % (x["tflops"], x["mib"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
