#!/usr/bin/env python3
"""What packages are made by says what CMake says: Spack's recipe has options that there are, modulefiles lead to the tree that they
lie in, the version stands in one place.

    packaging_test.py ROOT BUILD
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types

ROOT, BUILD = map(pathlib.Path, sys.argv[1:])
CACHE = (BUILD / "CMakeCache.txt").read_text()
VERSION = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", CACHE, re.M)[1]
LMOD = pathlib.Path("/usr/share/lmod/lmod/libexec/lmod")


class Spec:
    """As Spack's, with one library and without the other."""
    prefix = "/somewhere"

    def __getitem__(self, name):
        return self

    def satisfies(self, text):
        return text in ("+openmpi", "~mpich")


class CMakePackage:
    spec = Spec()

    @staticmethod
    def define(name, value):
        return f"-D{name}={value}"


def recipe():
    """The class of Spack's recipe, and what its directives were told."""
    said = []
    core = types.ModuleType("spack.package")
    core.__all__ = ["license", "version", "variant", "conflicts", "depends_on", "requires"]
    for name in core.__all__:
        setattr(core, name, lambda *words, name=name, **more: said.append((name, *words)))
    builtin = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    builtin.CMakePackage = CMakePackage
    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules |= {"spack.package": core, builtin.__name__: builtin}
    path = ROOT / "packaging/spack/spack_repo/fermata/packages/fermata/package.py"
    space = {"__file__": str(path), "__name__": "recipe"}
    exec(compile(path.read_text(), path, "exec"), space)
    return space["Fermata"], said


def spack():
    package, said = recipe()
    assert package.git == f"file://{ROOT}", package.git
    given = [re.fullmatch(r"-D(\w+)=(.*)", word).groups() for word in package().cmake_args()]
    for name, value in given:
        assert re.search(rf"^{name}:", CACHE, re.M), f"CMake knows no {name}"
    assert ("FERMATA_OPENMPI_LIBRARY", "/somewhere/lib/libmpi.so.40") in given and ("FERMATA_MPICH_INCLUDE", "/nowhere/include") in given, given
    # What CMake asks for, by Spack's names.
    packages = {words[1].split("@")[0].split("+")[0] for words in said if words[0] == "depends_on"}
    asked = {name for file in (ROOT / "src").rglob("CMakeLists.txt") for name in re.findall(r"find_package\((\w+)", file.read_text())}
    names = {"CLI11": "cli11", "PkgConfig": "pkgconfig", "nlohmann_json": "nlohmann-json"}
    left = {names.get(name, name) for name in asked} - packages - {"Threads"}
    assert not left, f"no depends_on for {left}"


def loaded(shell_words):
    return dict(re.findall(r'^(?:export )?(\w+)="?([^";\n]*)"?;', shell_words, re.M))


def modulefiles():
    if not LMOD.exists():
        print("no Lmod here: modulefiles are not loaded")
        return
    with tempfile.TemporaryDirectory() as folder:
        there = pathlib.Path(folder).resolve() / "prefix/share/modulefiles/fermata"
        for name in (VERSION, VERSION + ".lua"):
            there.mkdir(parents=True)
            shutil.copy(BUILD / "packaging" / name, there)
            done = subprocess.run([LMOD, "bash", "load", "fermata"], capture_output=True, text=True,
                                  env={"PATH": "/usr/bin:/bin", "HOME": folder, "MODULEPATH": str(there.parent), "LMOD_SYSTEM_NAME": name})
            got, prefix = loaded(done.stdout), str(there.parents[2])
            assert got.get("FERMATA_ROOT") == prefix and got["PATH"].startswith(f"{prefix}/bin:"), (name, done.stdout, done.stderr)
            assert got["PYTHONPATH"] == f"{prefix}/lib/python3/dist-packages", got
            shutil.rmtree(there)


def version():
    strays = [str(path.relative_to(ROOT)) for folder in ("src", "python", "packaging", "include") for path in (ROOT / folder).rglob("*")
              if path.is_file() and path.suffix != ".pyc" and path.name != "interfaces.txt" and re.search(rf"(?<![\d.]){re.escape(VERSION)}(?![\d.])", path.read_text(errors="replace"))]
    assert not strays, f"the version stands in {strays}, too"
    assert re.search(rf"^## {re.escape(VERSION)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M), f"CHANGELOG.md has nothing of {VERSION}"


spack()
modulefiles()
version()
