# mpi4py: pickled and buffer messages, derived datatypes, collectives on a split communicator.
import sys
import zlib

import numpy
from mpi4py import MPI

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
half = world.Split(rank % 2, rank)
column = MPI.DOUBLE.Create_vector(8, 1, 8).Commit()
field = numpy.linspace(rank, rank + 1, 4096)
digest = 0
for step in range(steps):
    for _ in range(rounds):
        field = 0.5 * (numpy.roll(field, 1) + field) + 1e-3
    note = world.sendrecv({"step": step, "from": rank, "list": list(range(step % 7))}, dest=(rank + 1) % size,
                          source=(rank - 1) % size)
    assert note == {"step": step, "from": (rank - 1) % size, "list": list(range(step % 7))}, note
    matrix, got = field[:64].copy(), numpy.empty(8)
    request = world.Isend([matrix, 1, column], dest=(rank - 1) % size, tag=5)
    world.Recv(got, source=MPI.ANY_SOURCE, tag=5)
    request.Wait()
    total = numpy.empty(8)
    world.Allreduce(got, total, op=MPI.SUM)
    parts = half.gather(zlib.crc32(field.tobytes()), root=0)
    parts = half.bcast(parts, root=0)
    digest = zlib.crc32(repr((note, parts)).encode() + total.tobytes(), digest)
    alls = world.gather(digest, root=0)
    if rank == 0:
        print("step", step, " ".join("%08x" % d for d in alls), flush=True)
column.Free()
half.Free()
if rank == 0:
    print("pickle_mix: right")
