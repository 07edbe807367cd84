"""Debian's own programs, what they are given, and which of their lines are results."""
import dataclasses
import html
import os
import pathlib
import re
import shutil
import subprocess

INPUTS = pathlib.Path(__file__).resolve().parent / "inputs"
SCALAPACK = pathlib.Path("/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests")
CAVITY = pathlib.Path("/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity")
PETSC_PAGE = pathlib.Path("/usr/share/doc/petsc3.18-doc/docs/src/ksp/ksp/tutorials/ex45.c.html")


@dataclasses.dataclass
class Case:
    what: str
    packages: str
    program: list
    keep: str                      # lines that are results
    drop: str = r"(?!)"            # parts of them that are times
    ranks: int = 2
    result_file: str = ""          # results are in this file instead of on standard output
    on_stderr: bool = False        # ... or on standard error
    tolerance: float = 0           # of numbers in the lines; 0: the same characters
    kill: bool = False             # kill -9 after the checkpoint; else the job stops with it, because its files go on
    abi: str = "openmpi"
    prepare: object = lambda cwd: None


def give(*names):
    def prepare(cwd):
        for name in names:
            shutil.copy(INPUTS / name, cwd)
    return prepare


def tool(words, cwd):
    subprocess.run(words, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def water_box(cwd):
    give("water.mdp", "water.top")(cwd)
    tool(["gmx", "solvate", "-cs", "spc216.gro", "-box", "2.5", "2.5", "2.5", "-o", "box.gro"], cwd)
    molecules = sum(line[8:15].strip() == "OW" for line in (cwd / "box.gro").read_text().splitlines())
    with open(cwd / "water.top", "a", encoding="ascii") as topology:
        topology.write(f"SOL {molecules}\n")
    tool(["gmx", "grompp", "-f", "water.mdp", "-c", "box.gro", "-p", "water.top", "-o", "water.tpr", "-maxwarn", "2"], cwd)


def cavity(cwd):
    """OpenFOAM's own example, finer and in two parts."""
    shutil.copytree(CAVITY, cwd, dirs_exist_ok=True)
    shutil.copy(INPUTS / "decomposeParDict", cwd / "system")
    for name, changes in {"controlDict": (("endTime         0.5", "endTime         1.5"), ("deltaT          0.005", "deltaT          0.001")),
                          "blockMeshDict": (("(20 20 1)", "(40 40 1)"),)}.items():
        text = (cwd / "system" / name).read_text(encoding="ascii")
        for old, new in changes:
            assert old in text, f"{name} of this OpenFOAM has no {old}"
            text = text.replace(old, new)
        (cwd / "system" / name).write_text(text, encoding="ascii")
    for word in ("blockMesh", "decomposePar"):
        tool([word], cwd)


def ex45(cwd):
    """Debian ships the source of PETSc's examples as a page."""
    page = PETSC_PAGE.read_text(encoding="utf-8")
    listing = page[page.index("<pre"):page.rindex("</pre>")]
    listing = re.sub(r'<a name="line\d+">\s*\d+: ?</a>', "", listing)
    (cwd / "ex45.c").write_text(html.unescape(re.sub(r"<[^>]+>", "", listing)), encoding="utf-8")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "PETSc"], capture_output=True, text=True, check=True)
    tool(["mpicc.openmpi", "-O2", "ex45.c", *flags.stdout.split(), "-lm", "-o", "ex45"], cwd)


def factor(cwd):
    """All of Debian's matrices, on grids of two processes: four of MPICH on two processors take minutes, natively too."""
    lines = (SCALAPACK / "LU.dat").read_text(encoding="ascii").splitlines()
    sizes, grids = (next(i for i, line in enumerate(lines) if text in line) for text in ("problems sizes", "process grids"))
    lines[sizes] = "7"
    lines[grids:grids + 3] = ["2", "1 2", "2 1"]
    (cwd / "LU.dat").write_text("\n".join(lines) + "\n", encoding="ascii")


GRID = "91"
os.environ.setdefault("WM_PROJECT_DIR", "/usr/share/openfoam")  # OpenFOAM's own settings are below it
CASES = {
    "quantum-espresso": Case(
        "Quantum ESPRESSO, SCF of Si8 with forces and stress", "quantum-espresso quantum-espresso-data",
        ["pw.x", "-in", "si8.in"], r"^!|total energy  |scf accuracy|force =|^ +-?0\.\d{8} ", kill=True,
        prepare=give("si8.in")),
    "gromacs": Case(
        "GROMACS, 510 molecules of water, PME", "gromacs",
        ["gmx_mpi", "mdrun", "-s", "water.tpr", "-reprod", "-dlb", "no", "-ntomp", "1", "-g", "md.log", "-nb", "cpu", "-pin",
         "off"], r"^ +(-?\d\.\d{5}e[+-]\d\d ?)+", result_file="md.log", prepare=water_box),
    "cp2k": Case(
        "CP2K, molecular dynamics of a water molecule (DFT)", "cp2k cp2k-data", ["cp2k.psmp", "-i", "water.inp"], r"^ *Total energy: |^ ENERGY\| ", kill=True,
        prepare=give("water.inp")),
    "openfoam": Case(
        "OpenFOAM, flow in a cavity (icoFoam)", "openfoam openfoam-examples", ["icoFoam", "-parallel"], r"Initial residual|continuity",
        prepare=cavity),
    "hdf5": Case(
        "h5py with parallel HDF5 (MPI-IO)", "python3-h5py-mpi", ["/usr/bin/python3", "fields.py"], r"^sum", kill=True,
        prepare=give("fields.py")),
    "nwchem": Case(
        "NWChem, water dimer, RHF and B3LYP (Global Arrays)", "nwchem-openmpi", ["nwchem.openmpi", "dimer.nw"],
        r"(Total (SCF|DFT)|[Oo]ne.electron|Two-electron|repulsion|Coulomb|Exchange|Correlation) energy +=",
        tolerance=1e-7, kill=True, prepare=give("dimer.nw")),
    "petsc": Case(
        f"PETSc ex45, Poisson on {GRID}^3, groppcg (MPI_Iallreduce)", "petsc-dev petsc3.18-doc",
        ["./ex45", "-ksp_type", "groppcg", "-pc_type", "jacobi", "-ksp_monitor", "-ksp_rtol", "1e-9",
         "-da_grid_x", GRID, "-da_grid_y", GRID, "-da_grid_z", GRID], r"[Rr]esidual norm", kill=True, prepare=ex45),
    "scalapack": Case(
        "ScaLAPACK's test of LU (xdlu)", "scalapack-mpi-test", [SCALAPACK / "xdlu"], r"PASSED$|FAILED$|tests",
        drop=r"( +\d+\.\d\d){3}(?= PASSED| FAILED)", kill=True, prepare=factor),
    "netpipe": Case(
        "NetPIPE with its integrity check", "netpipe-openmpi", ["NPopenmpi", "-i", "-I", "-u", "65536", "-o", "np.out"],
        r"Integrity check", drop=r" +\d+ times", on_stderr=True),
    "netpipe-mpich": Case(
        "NetPIPE for MPICH", "netpipe-mpich2", ["NPmpich2", "-i", "-I", "-u", "65536", "-o", "np.out"],
        r"Integrity check", drop=r" +\d+ times", on_stderr=True, abi="mpich"),
}
