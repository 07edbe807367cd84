"""A program that is stopped with a checkpoint at a random moment and continued, given back as if it had been one run."""
import os
import random
import re
import subprocess
import tempfile

import suites

TO_BE_CONTINUED = 85


def run(mpi, ranks, program, cwd, timeout, env, options):
    """`options`: seed, restart_mpi (None: the same library), preload, pause. Run.held says whether it was stopped."""
    chance = random.Random(f"{options.seed} {ranks} {' '.join(map(str, program))}")
    delay = chance.uniform(0.25, 0.25 + options.spread)
    env = dict(env or {}, PAUSE_SEED=str(options.seed))
    if options.preload:
        env["LD_PRELOAD"] = options.preload
    with tempfile.TemporaryDirectory(prefix="fermata-suite-") as directory:
        job = f"suite-{os.getpid()}-{chance.randrange(10**9)}"
        stopper = subprocess.Popen(
            ["sh", "-c", f"sleep {delay:.3f}; for try in 1 2 3 4 5 6; do {suites.FERMATA} checkpoint --stop --job {job} "
             f"--timeout {timeout}s && exit 0; sleep 0.1; done"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        words = [suites.FERMATA, "run", "--job", job, "-n", ranks, "--mpi", mpi, "--ckpt-dir", f"{directory}/ckpt", "-v"]
        code, out, err = suites.execute([*words, "--", *program], cwd, timeout + 15, env)
        said = stopper.communicate(timeout=timeout + 60)[0].decode(errors="replace")
        held = code == TO_BE_CONTINUED
        if held:
            # mpiexec.mpich says on standard output that its ranks were ended.
            banner = r"=|YOUR APPLICATION TERMINATED WITH|This typically refers to|Please see the FAQ"
            out = "\n".join(line for line in out.splitlines() if not re.match(banner, line))
            out += "\n"
            env.pop("LD_PRELOAD", None)  # it is in the image
            code, more, errors = suites.execute(
                [suites.FERMATA, "restart", "--ckpt-dir", f"{directory}/ckpt", "--mpi", options.restart_mpi or mpi, "-v"],
                cwd, timeout + 15, env)
            out, err = out + more, err + errors
        run = suites.Run(code, out, err)
        run.held = held
        if not held:
            run.notes += [line for line in said.splitlines() if "no such job" not in line][:2]
        return run
