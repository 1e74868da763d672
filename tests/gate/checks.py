"""Runs the checks of a test file: every function of its own that is no helper of theirs."""


def run_all(names, but):
    """names: globals() of the file; but: its helpers. The first check that fails is named and ends the run."""
    for name, check in list(names.items()):
        if not callable(check) or getattr(check, "__module__", None) != "__main__" or name in but:
            continue
        try:
            check()
        except Exception as e:
            print("%s: %s: %s" % (check.__name__, type(e).__name__, e))
            raise
