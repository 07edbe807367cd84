"""A heat equation in numpy that saves its own state, and goes on from it on any number of ranks.

    mpirun -n 4 python3 heat.py [STEPS]
"""
import sys

import numpy
from mpi4py import MPI

import fermata

NX, NY = 96, 64
comm = MPI.COMM_WORLD
first, last = NX * comm.rank // comm.size, NX * (comm.rank + 1) // comm.size
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
u = numpy.zeros((last - first, NY))
if first <= NX // 2 < last:
    u[NX // 2 - first, NY // 2] = 1e6
up = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
down = comm.rank - 1 if comm.rank else MPI.PROC_NULL

with fermata.Checkpoints(comm, "heat-state", keep=2) as state:
    state.protect_array("u", u, shape=(NX, NY), offset=(first, 0))
    step = state.restore() or 0
    while step < steps:
        wide = numpy.zeros((last - first + 2, NY))
        wide[1:-1] = u
        comm.Sendrecv(u[-1], up, 0, wide[0], down, 0)
        comm.Sendrecv(u[0], down, 1, wide[-1], up, 1)
        u[:, 1:-1] += 0.2 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * u[:, 1:-1])
        step += 1
        if step % 50 == 0:
            state.save(step)
peak = comm.reduce(u.max(), MPI.MAX)
if comm.rank == 0:
    print(f"step {step} max {peak:.16e}")
