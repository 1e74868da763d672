"""Reports against docs/report.schema.json: schema_test.py FILE…. A small checker of the words that the schema uses; any other word in
it is an error, so that none is there for show."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "title", "description", "type", "required", "properties", "items", "enum", "const", "minimum"}


def is_type(value, name):
    if name in ("number", "integer"):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and (name == "number" or value == int(value))
    return isinstance(value, TYPES[name])


def check(value, schema, at, wrong):
    for word in set(schema) - KNOWN:
        wrong.append("the schema at %s: unknown word %s" % (at, word))
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, n) for n in names):
        wrong.append("%s is %s, not %s" % (at, json.dumps(value)[:80], " or ".join(names)))
        return
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        wrong.append("%s is %s, not one of %s" % (at, json.dumps(value)[:80], schema.get("enum", schema.get("const"))))
    if "minimum" in schema and isinstance(value, (int, float)) and value < schema["minimum"]:
        wrong.append("%s is %s, less than %s" % (at, value, schema["minimum"]))
    if isinstance(value, dict):
        wrong += ["%s lacks %s" % (at, k) for k in schema.get("required", []) if k not in value]
        for k, s in schema.get("properties", {}).items():
            if k in value:
                check(value[k], s, at + "." + k, wrong)
    if isinstance(value, list) and "items" in schema:
        for i, v in enumerate(value):
            check(v, schema["items"], "%s[%d]" % (at, i), wrong)


def main():
    with open(os.path.join(HERE, "..", "..", "docs", "report.schema.json"), encoding="utf-8") as f:
        schema = json.load(f)
    bad = 0
    must_fail = []
    check({"schema": "fainstall.report/1", "verdict": "fine", "steps": [{"id": 1}]}, schema, "report", must_fail)
    if len(must_fail) < 9:   # lacks seven keys or more, a wrong word, a wrong type
        print("the checker lets wrong reports pass: %s" % must_fail)
        bad += 1
    for path in sys.argv[1:]:
        wrong = []
        with open(path, encoding="utf-8") as f:
            check(json.load(f), schema, "report", wrong)
        for w in wrong[:20]:
            print("%s: %s" % (path, w))
        bad += bool(wrong)
    print("%d reports, %d wrong" % (len(sys.argv) - 1, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
