"""One rank of mpi4py's tests: runs its runner and writes what came of each test, as it ends, to RESULTS.RANK.

    python mpi4py_rank.py RESULTS runtests.py [arguments of runtests.py]

What ranks print is mixed; these files are not, and after a crash they say how far each rank came.
"""
import json
import os
import pathlib
import runpy
import sys
import time
import unittest

rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or "0"
results = open(f"{sys.argv[1]}.{rank}", "w", buffering=1)
sys.argv = sys.argv[2:]
sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))


def record(method, outcome):
    theirs = getattr(unittest.TextTestResult, method)

    def ours(self, test, *words):
        # Of an error the line that says what; of a skip its reason.
        said = str(words[0][1] if isinstance(words[0], tuple) else words[0]).strip() if words else ""
        results.write(json.dumps([test.id(), outcome, said[:300]]) + "\n")
        return theirs(self, test, *words)

    setattr(unittest.TextTestResult, method, ours)


for method, outcome in {"addSuccess": "ok", "addSkip": "skip", "addExpectedFailure": "expected", "addFailure": "fail",
                        "addError": "fail", "addUnexpectedSuccess": "fail"}.items():
    record(method, outcome)


def record_subtest(theirs):
    """A test whose subtest fails is no success, and nothing else is called for it."""
    def ours(self, test, subtest, err):
        if err is not None:
            results.write(json.dumps([test.id(), "fail", str(err[1]).strip()[:300]]) + "\n")
        return theirs(self, test, subtest, err)

    return ours


def rest_after(theirs, seconds):
    """For a checkpoint to come between the tests of a file, most of which take no time."""
    def ours(self, test):
        time.sleep(seconds)
        return theirs(self, test)

    return ours


unittest.TextTestResult.stopTest = rest_after(unittest.TextTestResult.stopTest, float(os.environ.get("MPI4PY_REST", "0")))
unittest.TextTestResult.addSubTest = record_subtest(unittest.TextTestResult.addSubTest)
runpy.run_path(sys.argv[0], run_name="__main__")
