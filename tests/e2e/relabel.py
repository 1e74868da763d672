#!/usr/bin/env python3
"""relabel.py WHEEL LABEL FILE: the same wheel with another local version label and file name, as a release page would hold it."""
import base64
import hashlib
import sys
import zipfile

wheel, label, out = sys.argv[1:]
with zipfile.ZipFile(wheel) as z:
    files = {n: z.read(n) for n in z.namelist()}
old = next(n for n in files if n.endswith(".dist-info/METADATA")).split("/")[0]
new = old.split("+")[0].replace(".dist-info", "") + "+" + label + ".dist-info"
version = new[: -len(".dist-info")].split("-", 1)[1]
named = {}
for name, data in files.items():
    if name == old + "/METADATA":
        data = b"\n".join(b"Version: " + version.encode() if line.startswith(b"Version: ") else line for line in data.split(b"\n"))
    if name != old + "/RECORD":
        named[name.replace(old + "/", new + "/")] = data
record = ""
for name, data in named.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(data)}\n"
named[new + "/RECORD"] = (record + f"{new}/RECORD,,\n").encode()
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
    for name, data in named.items():
        z.writestr(name, data)
