#!/usr/bin/env python3
"""What the sources of each release really hold, read from the source archives and from NVIDIA's runtime headers.

    released.py SDISTS RUNTIMES [--repository DIR] [--check]

SDISTS holds flash_attn-*.tar.gz of the package index, RUNTIMES wheels of nvidia-cuda-runtime-cu11, nvidia-cuda-runtime-cu12 and
nvidia-cuda-runtime (`pip download --no-deps -d RUNTIMES …`), --repository a git folder of upstream's for the commits of matrix/flash-attn.json
that are no archive. Writes tools/released.json, which carry.py puts into the tables:

    device_prop   by CUDA major: where the members of cudaDeviceProp lie, in bytes, that some release reads
    releases      without: features it can be built without, honoured by kernels and entry file (recipes/switches.py);
                  stays: features that it has and cannot be built without;
                  apart: kinds of kernels whose causal half is a file of its own;
                  reads: members that it reads of the struct that torch filled. Only a release that reads none that moved works when
                  nvcc is of another CUDA major than torch.

--check writes nothing: it exits 1 when an archive says something else than the file does."""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "recipes"))
import switches  # noqa: E402

PLACE = os.path.join(TOP, "tools", "released.json")
# What of the headers the runtime's wheel lacks (it lies in that of nvcc); nothing in it changes a layout.
HOST_DEFINES = "#define __device_builtin__\n#define __cuda_builtin_vector_align8(t, m) struct t { m }\n#define __host__\n#define __device__\n" \
               "#define CUDARTAPI\n#define __align__(n) __attribute__((aligned(n)))\n#define __builtin_align__(n) __align__(n)\n#define __location__(a)\n"


def key(version):
    return [int(n) for n in re.findall(r"\d+", version)]


# ---- cudaDeviceProp


def members(text):
    """Names of the struct's members, as the header has them."""
    body = re.search(r"struct (?:__device_builtin__ )?cudaDeviceProp\s*\{(.*?)\n\};", switches.without_comments(text), flags=re.S)
    return re.findall(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*;", body[1])


def offsets(wheel):
    """(CUDA version, {member: bytes from the start})"""
    version = re.search(r"-(\d+\.\d+)[.\d]*-py3", os.path.basename(wheel))[1]
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            if "/include/" in name and not name.endswith("/"):
                path = os.path.join(folder, name.split("/include/", 1)[1])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as f:
                    f.write(z.read(name))
        if not os.path.exists(os.path.join(folder, "crt/host_defines.h")):
            os.makedirs(os.path.join(folder, "crt"), exist_ok=True)
            with open(os.path.join(folder, "crt/host_defines.h"), "w", encoding="utf-8") as f:
                f.write(HOST_DEFINES)
        names = members(open(os.path.join(folder, "driver_types.h"), encoding="utf-8").read())
        source = os.path.join(folder, "offsets.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write('#include <stddef.h>\n#include <stdio.h>\n#include "driver_types.h"\nint main(void) {\n%s\n}\n' % "\n".join(
                'printf("%s %%zu\\n", offsetof(struct cudaDeviceProp, %s));' % (n, n) for n in names))
        subprocess.run(["gcc", "-w", "-I", folder, source, "-o", source + ".out"], check=True)
        said = subprocess.run([source + ".out"], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
    return version, {line.split()[0]: int(line.split()[1]) for line in said.splitlines()}


def by_major(headers, wanted):
    """{major: {member: offset}} of those wanted; releases of one major must agree."""
    out = {}
    for version, places in headers:
        row = out.setdefault(version.split(".")[0], {})
        for member in wanted:
            if row.setdefault(member, places.get(member)) != places.get(member):
                sys.exit("cudaDeviceProp.%s lies elsewhere in CUDA %s than in an earlier one of that major" % (member, version))
    return out


# ---- a release


def reads(source, names):
    """Members of cudaDeviceProp that the compiled files read where they got the struct from torch. Variables are found by what they
    are set to, or declared as; a struct that a release fills itself (cudaGetDeviceProperties) comes of its own runtime."""
    found = set()
    for path in sorted(glob.glob(os.path.join(source, "csrc/flash_attn/**/*.*"), recursive=True)):
        if not re.search(r"\.(h|cuh|cu|cpp)$", path):
            continue
        text = switches.plain(path)
        variables = set(re.findall(r"(\w+)\s*=\s*[\w:]*get(?:Current)?DeviceProperties\(", text)) | set(re.findall(r"cudaDeviceProp\s*[*&]\s*(\w+)", text))
        for before, member in re.findall(r"([\w:]+(?:\([^()]*\))?)\s*(?:->|\.)\s*(\w+)", text):
            if member in names and (before in variables or re.search(r"get(Current)?DeviceProperties\(", before)):
                found.add(member)
    return sorted(found)


def apart(source):
    """Kinds of kernels whose causal half is a file of its own."""
    files = os.listdir(os.path.join(source, "csrc/flash_attn/src"))
    return sorted({m[1] for m in (re.fullmatch(r"flash_(\w+?)_hdim\d+_\w+_causal_sm\d+\.cu", f) for f in files) if m})


def release(archive, names):
    """archive: an open tarfile."""
    with tempfile.TemporaryDirectory() as folder:
        for m in archive:
            if m.isfile() and "/csrc/flash_attn/" in m.name and ".." not in m.name and m.name[0] != "/":
                archive.extract(m, folder)
        source = os.path.join(folder, os.listdir(folder)[0])
        s = switches.Switches(source)
        return {"without": " ".join(s.off), "stays": " ".join(s.stay), "reads": " ".join(reads(source, names)), "apart": " ".join(apart(source))}


def from_archives(folder, names):
    for path in glob.glob(os.path.join(folder, "flash_attn-*.tar.gz")):
        with tarfile.open(path) as t:
            yield re.search(r"flash_attn-(.+)\.tar\.gz", path)[1], release(t, names)


def from_repository(folder, but, names):
    """Rows of the table that have a commit and no archive."""
    with open(os.path.join(TOP, "matrix/flash-attn.json"), encoding="utf-8") as f:
        rows = [r for r in json.load(f)["rows"] if r["line"] == "fa2" and r.get("commit") and r["version"] not in but]
    for r in rows:
        words = ["git", "-C", folder, "archive", "--prefix=source/", r["commit"], "csrc/flash_attn"]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as git, tarfile.open(fileobj=git.stdout, mode="r|") as t:
            yield r["version"], release(t, names)


def main():
    ap = argparse.ArgumentParser(description="read what the sources of each release hold")
    ap.add_argument("sdists")
    ap.add_argument("runtimes")
    ap.add_argument("--repository")
    ap.add_argument("--check", action="store_true", help="write nothing, exit 1 when something differs")
    opt = ap.parse_args()
    headers = sorted(map(offsets, glob.glob(os.path.join(opt.runtimes, "nvidia_cuda_runtime*.whl"))), key=lambda row: key(row[0]))
    names = set().union(*(places for _, places in headers))
    found = dict(from_archives(opt.sdists, names))
    found.update(from_repository(opt.repository, set(found), names) if opt.repository else [])
    read = sorted({m for r in found.values() for m in r["reads"].split()})
    new = {"device_prop": by_major(headers, read), "releases": {v: found[v] for v in sorted(found, key=key, reverse=True)}}
    which = "CUDA " + " ".join(version for version, _ in headers)
    if opt.check:
        with open(PLACE, encoding="utf-8") as f:
            old = json.load(f)
        wrong = ["%s: %s, the archive says %s" % (v, old["releases"].get(v), r) for v, r in new["releases"].items() if r != old["releases"].get(v)]
        wrong += ["CUDA %s: %s, the headers say %s" % (m, old["device_prop"].get(m), p) for m, p in new["device_prop"].items() if p != old["device_prop"].get(m)]
        print("\n".join(wrong + ["%d releases, %s: %s" % (len(found), which, "%d differ" % len(wrong) if wrong else "as written")]))
        return 1 if wrong else 0
    with open(PLACE, "w", encoding="utf-8") as f:
        f.write(json.dumps(new, indent="\t") + "\n")
    print("%s: %d releases, %s" % (os.path.relpath(PLACE, TOP), len(found), which))
    return 0


if __name__ == "__main__":
    sys.exit(main())
