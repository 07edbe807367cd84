# Spack's recipe of Fermata: `spack repo add packaging/spack/spack_repo/fermata`, then `spack install fermata`.
import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Fermata(CMakePackage):
    """Transparent checkpoints of unmodified MPI programs, continued on other nodes, networks and MPI libraries."""

    # The checkout that this recipe lies in.
    git = "file://" + str(pathlib.Path(__file__).resolve().parents[6])

    license("Apache-2.0")

    version("main", branch="main")

    variant("openmpi", default=True, description="run programs on Open MPI")
    variant("mpich", default=True, description="run programs on MPICH")
    conflicts("~openmpi~mpich", msg="one MPI library at least")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("fmt@9:+shared")
    depends_on("spdlog@1.10:+shared fmt_external=True")
    depends_on("cli11@2.1:")
    depends_on("nlohmann-json@3.11:")
    depends_on("xxhash")
    depends_on("lz4")
    depends_on("zstd")
    depends_on("libsodium")
    depends_on("mimalloc@2:")
    depends_on("zydis")
    depends_on("isa-l")
    depends_on("openmpi@4:", when="+openmpi")
    depends_on("pmix", when="+openmpi")
    depends_on("mpich@4:", when="+mpich")

    conflicts("platform=darwin")
    requires("target=x86_64:")

    def cmake_args(self):
        # Spack's own run paths lead to the libraries below.
        args = [self.define("FERMATA_TESTS", False), self.define("FERMATA_BUNDLE", False)]
        for mpi, name in (("openmpi", "libmpi.so.40"), ("mpich", "libmpi.so.12")):
            prefix = self.spec[mpi].prefix if self.spec.satisfies(f"+{mpi}") else "/nowhere"
            args.append(self.define(f"FERMATA_{mpi.upper()}_INCLUDE", f"{prefix}/include"))
            args.append(self.define(f"FERMATA_{mpi.upper()}_LIBRARY", f"{prefix}/lib/{name}"))
        return args
