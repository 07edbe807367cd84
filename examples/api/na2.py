#!/usr/bin/python3
"""Na2 after a kick, by GPAW's LCAO-TDDFT (Debian: gpaw, gpaw-data); an observer saves the state every ten steps.

    gpaw python na2.py [STEPS]      (on one rank)
"""
import os
import sys

import numpy
from ase import Atoms
from gpaw import GPAW
from gpaw.lcaotddft import LCAOTDDFT
from gpaw.lcaotddft.observer import TDDFTObserver
from mpi4py import MPI

import fermata


class Saver(TDDFTObserver):
    """Saves, and writes down the dipole of each step."""

    def __init__(self, paw, state, coefficients, time):
        self.state, self.coefficients, self.time = state, coefficients, time
        super().__init__(paw, 1)

    def _update(self, paw):
        step = paw.niter + 1  # GPAW counts after its observers
        if paw.action == "propagate":
            print(step, f"{paw.density.calculate_dipole_moment()[0]:.12e}", flush=True)
        if paw.action == "propagate" and step % 10 == 0:
            self.coefficients[:] = paw.wfs.kpt_u[0].C_nM
            self.time[0] = paw.time
            self.state.save(step)


assert MPI.COMM_WORLD.size == 1, "na2.py is for one rank"
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30
if not os.path.exists("na2.gpw"):
    atoms = Atoms("Na2", positions=[(0, 0, 0), (3.0788, 0, 0)])
    atoms.center(vacuum=4.0)
    atoms.calc = GPAW(mode="lcao", h=0.4, basis="dzp", xc="LDA", nbands=6, setups={"Na": "1"}, symmetry={"point_group": False}, txt="na2.txt")
    atoms.get_potential_energy()
    atoms.calc.write("na2.gpw", mode="all")
calc = LCAOTDDFT("na2.gpw", txt=None)
calc.tddft_init()
now = calc.wfs.kpt_u[0]
coefficients, time = now.C_nM.astype(complex), numpy.zeros(1)
with fermata.Checkpoints(MPI.COMM_WORLD, "na2-state", keep=2) as state:
    for name, array in (("coefficients", coefficients), ("time", time)):
        state.protect_global(name, array)
    step = state.restore()
    if step is None:
        calc.absorption_kick([1e-5, 0, 0])
    else:
        now.C_nM[:] = coefficients
        calc.time, calc.niter = time[0], step
        calc.td_hamiltonian.update()
    Saver(calc, state, coefficients, time)
    calc.propagate(20, steps - calc.niter)
