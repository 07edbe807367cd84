"""Puts the library beside the package: libfermata.so.1 of FERMATA_BUILD, or of the checkout's build folder. The wheel is this
machine's (its C library, Debian's libfmt and the like), for every Python 3."""
import os
import pathlib
import re
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution
from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("FERMATA_BUILD", HERE.parent / "build"))
LIBRARY = BUILD / "lib" / "libfermata.so.1"


def version():
    cache = BUILD / "CMakeCache.txt"
    if not cache.exists():
        raise SystemExit(f"{cache} is missing: build Fermata first, or name its build folder by FERMATA_BUILD")
    return re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", cache.read_text(), re.M)[1]


class WithLibrary(build_py):
    def run(self):
        super().run()
        if not LIBRARY.exists():
            raise SystemExit(f"{LIBRARY} is missing: build Fermata first, or name its build folder by FERMATA_BUILD")
        shutil.copy(LIBRARY, pathlib.Path(self.build_lib) / "fermata" / "libfermata.so.1")


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class AnyPython(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(version=version(), cmdclass={"build_py": WithLibrary, "bdist_wheel": AnyPython}, distclass=Binary)
