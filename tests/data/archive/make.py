#!/usr/bin/env python3
"""Makes the archives beside this file, good ones and hostile ones. Same script, same bytes; cases.txt says what becomes of them."""
import gzip
import io
import os
import tarfile
import warnings
import zipfile

warnings.simplefilter("ignore")  # a name twice is meant
HERE = os.path.dirname(os.path.abspath(__file__))
TIME = 1700000000


def member(name, data=b"x\n", kind=tarfile.REGTYPE, link="", mode=0o600):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.mtime = kind, link, mode, TIME
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    return info, data


def folder(name):
    return member(name, b"", tarfile.DIRTYPE, mode=0o700)


def link(name, target):
    return member(name, b"", tarfile.SYMTYPE, target)


def hard(name, target):
    return member(name, b"", tarfile.LNKTYPE, target)


def tar_bytes(*members, form=tarfile.PAX_FORMAT):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=form) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return raw.getvalue()


def write(name, data):
    with open(os.path.join(HERE, name), "wb") as out:
        out.write(data)


def tar(name, *members, form=tarfile.PAX_FORMAT):
    write(name, gzip.compress(tar_bytes(*members, form=form), mtime=0))


def zipped(*members):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data, mode in members:
            info = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            info.compress_type, info.external_attr, info.create_system = zipfile.ZIP_DEFLATED, mode << 16, 3
            z.writestr(info, data)
    return raw.getvalue()


top = folder("pkg-1/")
a = member("pkg-1/a.txt", b"hello\n")
tar("good.tar.gz", top, a, member("pkg-1/bin/run", b"#!/bin/sh\n", mode=0o4711), folder("pkg-1/empty/"), folder("pkg-1/bin/"))
tar("gnu-long.tar.gz", member("pkg-1/" + "d" * 120 + "/" + "f" * 120), form=tarfile.GNU_FORMAT)
tar("utf8.tar.gz", member("pkg-1/环境-é.txt"))
tar("dot.tar.gz", folder("./"), folder("./pkg-1/"), member("./pkg-1//a.txt", b"hello\n"))
tar("links.tar.gz", top, a, folder("pkg-1/sub/"), link("pkg-1/sub/up", "../a.txt"), link("pkg-1/b", "./a.txt"), hard("pkg-1/c", "pkg-1/a.txt"))
tar("absolute.tar.gz", member("/tmp/fa-evil"))
tar("dotdot.tar.gz", member("pkg-1/../../fa-evil"))
tar("dotdot-inside.tar.gz", member("pkg-1/sub/../a.txt"))
tar("link-absolute.tar.gz", top, link("pkg-1/etc", "/etc"))
tar("link-out.tar.gz", top, link("pkg-1/sub/up", "../../../etc/passwd"))
tar("link-chain.tar.gz", top, link("pkg-1/p/q/r/s", "../../../z"), link("pkg-1/e", "p/q/r/s/../.."))
tar("link-through.tar.gz", top, link("pkg-1/d", "sub"), member("pkg-1/d/evil"))
tar("link-over.tar.gz", top, a, link("pkg-1/a.txt", "b"))
tar("hard-out.tar.gz", top, hard("pkg-1/p", "../../etc/passwd"))
tar("hard-foreign.tar.gz", top, hard("pkg-1/p", "pkg-1/not-here"))
tar("hard-of-link.tar.gz", top, link("pkg-1/l", "a.txt"), hard("pkg-1/p", "pkg-1/l"))
tar("fifo.tar.gz", top, member("pkg-1/f", b"", tarfile.FIFOTYPE))
tar("device.tar.gz", top, member("pkg-1/sda", b"", tarfile.BLKTYPE))
tar("twice.tar.gz", a, a)
tar("file-then-folder.tar.gz", member("pkg-1/a"), member("pkg-1/a/b"))
tar("folder-then-file.tar.gz", member("pkg-1/a/b"), member("pkg-1/a"))
tar("control.tar.gz", member("pkg-1/a\x1b[2J\n"))
tar("long-name.tar.gz", member("pkg-1/" + "n/" * 600 + "x"))
tar("deep.tar.gz", member("d/" * 100 + "x"))
tar("only-top.tar.gz", top)
tar("bomb.tar.gz", member("pkg-1/zeros", bytes(4 << 20)))
tar("bomb-on-top.tar.gz", member("zeros", bytes(4 << 20)), a)
whole = gzip.compress(tar_bytes(top, a, member("pkg-1/b", bytes(range(256)) * 40)), mtime=0)
write("cut.tar.gz", whole[: len(whole) // 2])
write("cut-tar.tar.gz", gzip.compress(tar_bytes(member("pkg-1/b", bytes(range(256)) * 40))[:3000], mtime=0))
write("empty.tar.gz", b"")
write("garbage.tar.gz", bytes((i * 37 + 11) % 251 for i in range(2000)))
write("web-page.tar.gz", b"<!DOCTYPE html><html><body>Sign in</body></html>\n")
good = zipped(("pkg/__init__.py", "v = 1\n", 0o100600), ("pkg-1.dist-info/METADATA", "Name: pkg\n", 0o100644),
              ("pkg/tool", "#!/bin/sh\n", 0o100755))
write("good.whl", good)
write("cut.whl", good[: len(good) - 60])


def patched(data, local, central, value):
    out = bytearray(data)
    for start, at in ((out.index(b"PK\x03\x04"), local), (out.index(b"PK\x01\x02"), central)):
        out[start + at : start + at + 4] = value.to_bytes(4, "little")
    return bytes(out)


write("bad-crc.whl", patched(good, 14, 16, 0x12345678))
write("twice.whl", zipped(("a", "1", 0o100644), ("a", "2", 0o100644)))
write("dotdot.whl", zipped(("../fa-evil", "1", 0o100644)))
write("absolute.whl", zipped(("/tmp/fa-evil", "1", 0o100644)))
write("link.whl", zipped(("pkg/a", "/etc/passwd", 0o120777)))
write("bomb.whl", zipped(("pkg/zeros", bytes(4 << 20), 0o100644)))
write("lie.whl", patched(zipped(("pkg/zeros", bytes(300000), 0o100644)), 22, 24, 10))  # says 10 bytes, holds 300000
