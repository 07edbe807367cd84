#!/bin/bash
# A job that goes on by itself until it is done, whatever its time limit: sbatch slurm.sh
#SBATCH --ntasks=2 --time=01:00:00 --signal=B:TERM@300 --requeue --open-mode=append
job= stop=
trap 'stop=1; [ "$job" ] && kill -TERM $job && stop=' TERM # from Slurm, 300 s before the limit: a checkpoint, then the end
fermata run --continue -n "$SLURM_NTASKS" --ckpt-dir ckpt -- ./solver & # starts, or goes on from the newest checkpoint
job=$!
[ "$stop" ] && kill -TERM $job # it came before there was a job
until wait $job; code=$?; ! kill -0 $job 2>/dev/null; do :; done # the signal ends a wait, too
[ $code = 85 ] && scontrol requeue "$SLURM_JOB_ID"
exit $code
