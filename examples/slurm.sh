#!/bin/bash
# A job that goes on by itself until it is done, whatever its time limit and whatever fails: sbatch slurm.sh
#SBATCH --ntasks=2 --time=01:00:00 --signal=B:TERM@300 --requeue --no-kill --open-mode=append
job= stop=
# From Slurm, 300 s before the limit: a checkpoint, then the end.
trap 'stop=1; [ "$job" ] && kill -TERM $job && stop=' TERM
# Starts, or goes on from the newest checkpoint; what fails costs the time since that.
fermata run --continue --max-restarts 10 --interval auto -n "$SLURM_NTASKS" --ckpt-dir ckpt -- ./solver &
job=$!
[ "$stop" ] && kill -TERM $job # it came before there was a job
until wait $job; code=$?; ! kill -0 $job 2>/dev/null; do :; done # the signal ends a wait, too
[ $code = 85 ] && scontrol requeue "$SLURM_JOB_ID"
exit $code
