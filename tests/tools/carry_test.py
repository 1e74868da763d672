#!/usr/bin/env python3
"""Tests of tools/carry.py: a small tree of data beside this file gives the tables beside it, byte for byte; the tables of matrix/ keep
the shape that the script writes; where the whole data is (../shared/data, as labs keep it), matrix/ is what it gives."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPEC = importlib.util.spec_from_file_location("carry", os.path.join(TOP, "tools", "carry.py"))
carry = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(carry)


FIXTURE = os.path.join(TOP, "tests", "data", "carry")
DATA = [d for d in (os.path.join(TOP, up, "shared", "data") for up in ("..", "../..")) if os.path.isdir(d)]


def run(*words):
    return subprocess.run([sys.executable, os.path.join(TOP, "tools", "carry.py"), *words], capture_output=True, text=True, check=False)


def table(name):
    with open(os.path.join(TOP, "matrix", name + ".json"), encoding="utf-8") as f:
        return json.load(f)


class Rerun(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.dir)

    def test_a_small_tree_gives_its_tables_byte_for_byte(self):
        self.assertEqual(run(FIXTURE + "/source", "--out", self.dir).returncode, 0)
        for name in carry.TABLES:
            with open("%s/%s.json" % (self.dir, name), encoding="utf-8") as made, \
                    open("%s/expected/%s.json" % (FIXTURE, name), encoding="utf-8") as expected:
                self.assertEqual(made.read(), expected.read(), name)

    def test_again_gives_the_same(self):
        run(FIXTURE + "/source", "--out", self.dir)
        self.assertEqual(run(FIXTURE + "/source", "--out", self.dir, "--check").returncode, 0)

    def test_check_names_what_differs_and_writes_nothing(self):
        run(FIXTURE + "/source", "--out", self.dir)
        with open(self.dir + "/cuda.json", "a", encoding="utf-8") as f:
            f.write("\n")
        found = run(FIXTURE + "/source", "--out", self.dir, "--check")
        self.assertEqual(found.returncode, 1)
        self.assertIn("cuda.json: differs", found.stdout)
        self.assertEqual(found.stdout.count("differs"), 1)
        with open(self.dir + "/cuda.json", encoding="utf-8") as f:
            self.assertTrue(f.read().endswith("\n\n"))

    def test_what_the_small_tree_shows(self):
        def made(name):
            with open("%s/expected/%s.json" % (FIXTURE, name), encoding="utf-8") as f:
                return json.load(f)
        fa2 = {r["version"]: r for r in made("flash-attn")["rows"] if r["line"] == "fa2"}
        self.assertEqual(sorted(fa2), ["2.0.1", "2.6.3", "2.7.4.post1", "2.8.3"])
        self.assertEqual(fa2["2.8.3"]["cutlass"], "dc4817921edda44a549197ff3a9dcf5df0636e7b")
        self.assertEqual(made("fa3")["rows"][0]["nvcc"], "12.3")
        self.assertIn("FLASH_ATTENTION_DISABLE_SM80", made("fa3")["profiles"][1]["env"])
        self.assertEqual(made("fa4")["rows"][0]["version"], "4.0.0b36")
        self.assertEqual({r["version"]: r.get("driver") for r in made("wheels/official")["rows"]}["2.8.1"], "550")

    def test_the_matrix_is_what_the_whole_data_gives(self):
        for data in DATA[:1]:
            found = run(data, "--out", os.path.join(TOP, "matrix"), "--check")
            self.assertEqual(found.returncode, 0, found.stdout)


class Carry(unittest.TestCase):
    def test_versions_are_ordered(self):
        order = ["2.6.0", "2.8.3", "2.8.3.post1", "2.8.3.post2", "2.10.0"]
        self.assertEqual(sorted(reversed(order), key=carry.key), order)

    def test_architectures_lose_their_dots(self):
        self.assertEqual(carry.sm(["8.0", "12.0"]), "80 120")
        self.assertIsNone(carry.sm(None))

    def test_backward_limits_are_read_from_their_texts(self):
        self.assertEqual(carry.backward_limit("head dim > 192 only on 8.0 and 9.0"), {"above": 192, "dropout_only": False})
        self.assertTrue(carry.backward_limit("head dim > 192 with dropout only on 8.0 and 9.0")["dropout_only"])
        self.assertIsNone(carry.backward_limit("no host-side check"))

    def test_a_file_named_false_that_is_true_keeps_both(self):
        build = {"torch": "2.6.0", "cu": "cu12", "py": ["cp39", "cp37"], "abi": ["FALSE", "TRUE"], "sass": ["80"], "abi_false_is_really": "TRUE"}
        self.assertEqual(carry.official_build(build), ["2.6", "cu12", "39", "fT", "80"])

    def test_a_nightly_is_marked(self):
        build = {"torch": "2.6.0.dev20241001", "cu": "cu12", "py": ["cp39"], "abi": ["TRUE"], "sass": ["80"]}
        self.assertEqual(carry.official_build(build)[3], "Tn")

    def test_every_table_is_dated_and_sourced(self):
        for name in carry.TABLES:
            t = table(name)
            self.assertEqual(t["schema"], carry.SCHEMA)
            self.assertRegex(t["checked"], r"^\d{4}-\d\d-\d\d$")
            self.assertTrue(t["sources"])
            self.assertTrue(all(isinstance(r, list) or r.get("source") for r in t["rows"]), name)

    def test_rules_that_public_knowledge_gets_wrong(self):
        official = {r["version"]: r for r in table("wheels/official")["rows"] if r["source"] == "release workflow"}
        torch26 = [b for b in official["2.8.3"]["builds"] if b[0] == "2.6"]
        self.assertEqual(torch26[0][3], "fT")
        self.assertEqual(official["2.8.1"]["driver"], "550")
        self.assertEqual(official["2.8.3"]["glibc"], "2.32")
        self.assertNotIn("2.7.4", official)
        archs = {r["arch"]: r for r in table("archs")["rows"]}
        self.assertEqual((archs["86"]["compile"], archs["89"]["compile"], archs["87"]["compile"]), ("80", "80", "87"))
        releases = {r["version"]: r for r in table("flash-attn")["rows"] if r["line"] == "fa2"}
        self.assertEqual(releases["2.8.3"]["torch"], "2.2")


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - failed, failed))
    sys.exit(0 if result.wasSuccessful() else 1)
