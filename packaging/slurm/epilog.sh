#!/bin/sh
# Slurm's epilog on every node: removes what killed jobs of Fermata have left there, of all users; what runs,
# and what a restart may want, stays. In slurm.conf:
#     Epilog=/opt/fermata/lib/fermata/slurm/epilog.sh
here=$(dirname "$(readlink -f "$0")")
PATH=/usr/sbin:/usr/bin:/sbin:/bin timeout 60 "$here/../../../bin/fermata" doctor --sweep >/dev/null 2>&1
exit 0 # Slurm takes a node out of service whose epilog fails
