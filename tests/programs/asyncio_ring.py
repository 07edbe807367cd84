"""An event loop that remembers the process it was made in, over a checkpoint: tasks go on, a thread pool and a child
process work, random numbers do not take the process for a fork.

    python3 asyncio_ring.py HOLD_FILE [TURNS AFTER IT]
"""
import asyncio
import os
import random
import sys
import tempfile
import threading

from mpi4py import MPI

world = MPI.COMM_WORLD
hold = sys.argv[1]
me = os.getpid(), threading.get_native_id(), os.getppid(), os.getpgrp(), os.getsid(0)
lock = os.path.join(tempfile.mkdtemp(), f"lock.{os.getpid()}")
open(lock, "w").write(str(os.getpid()))
rng = random.Random(7)


async def ring(turns):
    total = 0
    for turn in range(turns):
        request = world.irecv(source=(world.rank - 1) % world.size, tag=turn)
        world.send(world.rank + turn, (world.rank + 1) % world.size, tag=turn)
        while True:
            done, value = request.test()
            if done:
                break
            await asyncio.sleep(0.001)
        total += value
    return total


async def main():
    total = await ring(5)
    loop = asyncio.get_running_loop()
    world.Barrier()
    if world.rank == 0:
        print("READY", flush=True)
    while hold != "-" and not os.path.exists(hold):
        await asyncio.sleep(0.01)
    assert asyncio.get_running_loop() is loop
    total += await ring(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    in_thread = await loop.run_in_executor(None, lambda: sum(range(100)))
    child = await asyncio.create_subprocess_exec("/bin/echo", "from a child", stdout=asyncio.subprocess.PIPE)
    said, _ = await child.communicate()
    assert child.returncode == 0 and said == b"from a child\n", (child.returncode, said)
    now = os.getpid(), threading.get_native_id(), os.getppid(), os.getpgrp(), os.getsid(0)
    assert now == me, (now, me)
    os.kill(int(open(lock).read()), 0)
    assert os.path.exists(f"/proc/{os.getpid()}/task/{threading.get_native_id()}")
    all_of = world.gather((world.rank, total, in_thread, rng.random()), 0)
    if world.rank == 0:
        print("right", all_of, flush=True)

asyncio.run(main())
