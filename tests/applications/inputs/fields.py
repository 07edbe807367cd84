# Rows of one data set written by all ranks, collectively and alone in turns; a file that stays open.
import contextlib

import h5py
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
assert h5py.get_config().mpi
with h5py.File("fields.h5", "w", driver="mpio", comm=world) as file:
    rows = file.create_dataset("rows", (400, world.size, 2000), dtype="f8")
    row = numpy.linspace(world.rank, world.rank + 1, 2000)
    for step in range(400):
        row = numpy.sin(row * 1.01 + 0.1 * world.allreduce(row.sum()) / row.size)
        with rows.collective if step % 2 else contextlib.nullcontext():
            rows[step, world.rank, :] = row
        if step % 10 == 0:
            total = world.allreduce(row.sum())
            if world.rank == 0:
                print("sum", step, repr(float(total)), flush=True)
    world.Barrier()
    back = rows[...]
    if world.rank == 0:
        print("sum of all", repr(float(back.sum())), repr(float(numpy.abs(back[::7]).max())), flush=True)
