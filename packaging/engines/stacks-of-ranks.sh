#!/bin/sh
# SPDX-License-Identifier: MIT
# stacks-of-ranks.sh PROGRAM: prints the stacks of all ranks of PROGRAM on this host, for fathom stack --merge. A rank is what Open MPI,
# MPICH or Slurm have given the process. On all hosts of a job:
#
#   srun --overlap --jobid=JOB --ntasks-per-node=1 stacks-of-ranks.sh solver | fathom stack --merge
#   mpirun -N 1 --host a,b stacks-of-ranks.sh solver | fathom stack --merge
set -u
program=${1:?the name of the program is missing}
status=0
for proc in /proc/[0-9]*; do
    case $(readlink "$proc/exe") in */"$program" | */"$program (deleted)") ;; *) continue ;; esac
    # Slurm's number may be that of the step which has started mpirun.
    rank=
    for name in OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK SLURM_PROCID; do
        [ -n "$rank" ] || rank=$(tr '\0' '\n' <"$proc/environ" | sed -n "s/^$name=\([0-9][0-9]*\)\$/\1/p" | head -n 1)
    done
    [ -n "$rank" ] || continue
    # Lines of several hosts come together: each process in one write, as far as pipes do that.
    stacks=$(fathom stack --json --rank "$rank" "${proc#/proc/}")
    [ $? != 2 ] || status=1
    [ -z "$stacks" ] || printf '%s\n' "$stacks"
done
exit $status
