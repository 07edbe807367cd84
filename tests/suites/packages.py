#!/usr/bin/env python3
"""The Debian package on machines that have nothing else: built here, installed by apt in a fresh Debian, and used there by a user
who has neither a compiler nor this tree. As root, with the network, after a build.

    tests/suites/packages.py [RELEASE…] [--deb FILE]     bookworm and trixie; FILE: this package instead of one of build/
    tests/suites/packages.py shell RELEASE               the package and LAMMPS there, and a shell of the user's

Each release is made by debootstrap once and never written to: what a run installs goes with it.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from suites import BUILD, ROOT, WHERE, Failure, check

MIRROR = "http://deb.debian.org/debian"
# $1: the release's folder, $2: a scratch folder, $3: packages that apt has fetched before, $4: what root does there. All mounts are
# gone with the command. Not chroot: ranks come to the root of a namespace of mounts.
ENTER = """set -e
mkdir -p "$2/over" "$2/work" "$2/root"; root=$2/root
mount -t overlay -o "lowerdir=$1,upperdir=$2/over,workdir=$2/work" none "$root"
mount -t proc proc "$root/proc"; mount -t sysfs sysfs "$root/sys"; mount --rbind /dev "$root/dev"; mount -t tmpfs none "$root/run"
mount -t tmpfs -o mode=1777 none "$root/tmp"; mkdir -p "$root/var/cache/apt/archives" "$root/mnt/in"
mount --bind "$3" "$root/var/cache/apt/archives"; mount --bind "$2/in" "$root/mnt/in"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/old"; cd "$root"; pivot_root . old; umount -l old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM="$TERM" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -ec "$4"
"""
INSTALL = """
apt-get update -qq
apt-get install -y -qq --no-install-recommends /mnt/in/fermata.deb openmpi-bin mpich lammps man-db >/mnt/in/apt.log 2>&1 || { tail -20 /mnt/in/apt.log; exit 1; }
for tool in cc gcc c++ g++ clang make cmake; do ! command -v $tool || { echo "a compiler: $tool"; exit 1; }; done
[ ! -e """ + str(ROOT) + """ ] || { echo 'this tree is there'; exit 1; }
useradd -m -s /bin/bash user
"""
# The main job: each library, killed, and continued on the other; the lines are those of an undisturbed run.
JOB = r"""
set -e
cp /usr/share/doc/fermata/examples/in.melt .
export OMP_NUM_THREADS=1
thermo() { grep -E '^ +[0-9]+( +-?[0-9.]+(e[-+][0-9]+)?){5} *$' "$1" || true; }
lmp="lmp -in in.melt -log none -nocite -var steps 400"
fermata --version
fermata doctor >doctor || { cat doctor; exit 1; }
mpiexec.openmpi --oversubscribe -n 2 $lmp >native </dev/null
thermo native >native.lines
all=$(wc -l <native.lines)
[ "$all" -gt 15 ] || { tail native; exit 1; }
for first in openmpi mpich; do
    other=mpich; [ $first = openmpi ] || other=openmpi
    fermata run -n 2 --mpi $first --job melt --ckpt-dir $first -- $lmp >$first.1 2>$first.1.err </dev/null &
    job=$!
    for ((i = 0; i < 3000; i++)); do
        [ "$(thermo $first.1 | wc -l)" -ge $((all / 3)) ] && break
        kill -0 $job || { cat $first.1.err; exit 1; }
        sleep 0.02
    done
    fermata checkpoint --job melt
    kill -9 $(fermata status --job melt --json | grep -oE '"pid": ?[0-9]+' | grep -oE '[0-9]+') 2>/dev/null || true
    code=0; wait $job || code=$?
    [ $code != 0 ] || { echo "it ended before it was killed"; exit 1; }
    thermo $first.1 >$first.lines
    fermata restart --ckpt-dir $first --mpi $other >$first.2 2>$first.2.err </dev/null || { cat $first.2.err; exit 1; }
    thermo $first.2 >$first.2.lines
    count=$(wc -l <$first.2.lines)
    [ "$count" -gt 3 ] || { echo "only $count lines after the restart"; exit 1; }
    tail -n "$count" native.lines | cmp - $first.2.lines
    head -n "$(wc -l <$first.lines)" native.lines | cmp - $first.lines
    echo "from $first to $other: $(wc -l <$first.lines) lines, killed with $code, then $count of $all: the same"
done
"""
FIRST_STEPS = r"""
echo "== first steps, as README has them"
mkdir steps; cd steps; export LC_ALL=C
. /mnt/in/steps >said 2>&1 || { cat said; exit 1; }
grep -q "Total wall time" said || { cat said; exit 1; }
[ -s fermata-report.html ] || { echo "no report"; exit 1; }
echo "right; manual: $(man fermata-run | wc -l) lines"
"""


def first_steps():
    """The commands of README that a user types."""
    # Who types it takes longer than a start does.
    part = re.search(r"^As anybody:\n\n((?:    .*\n)+)", (ROOT / "README.md").read_text(), re.M)[1]
    return "set -e\n" + re.sub("^    ", "", part, flags=re.M).replace("> melt.out &\n", "> melt.out &\nsleep 8\n").replace("kill -9 $!", "kill -9 $!; sleep 2")


def debian(release, where):
    base = where / f"base-{release}"
    if not base.exists():
        made = where / f"base-{release}.new"
        shutil.rmtree(made, ignore_errors=True)
        where.mkdir(parents=True, exist_ok=True)
        subprocess.run(["debootstrap", "--variant=minbase", release, made, MIRROR], check=True, stdout=subprocess.DEVNULL)
        (made / "etc/apt/apt.conf.d/snapshot").write_text('Acquire::Check-Valid-Until "false";\n')
        made.rename(base)
    return base


def built(scratch):
    subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", scratch], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    return next(scratch.glob("fermata_*.deb"))


def inside(release, where, deb, commands, **more):
    """`commands`: for bash, as the user, in its home. Its result, and where files of /mnt/in are."""
    archives = where / f"archives-{release}"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fermata-packages-", dir=where) as folder:
        given = pathlib.Path(folder) / "in"
        given.mkdir()
        shutil.copy(deb, given / "fermata.deb")
        (given / "job").write_text(commands)
        (given / "steps").write_text(first_steps())
        line = INSTALL + "cd /home/user; exec setsid -w su user -c 'exec bash /mnt/in/job'" if commands else INSTALL + "cd /home/user; exec su user"
        return subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c", ENTER, "enter", debian(release, where), folder,
                               archives, line], **more)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="*")
    parser.add_argument("--deb", type=pathlib.Path)
    parser.add_argument("--where", type=pathlib.Path, default=WHERE)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fermata-deb-") as scratch:
        deb = options.deb or built(pathlib.Path(scratch))
        if options.releases[:1] == ["shell"]:
            check(len(options.releases) == 2, "which release?")
            return inside(options.releases[1], options.where, deb, "").returncode
        for release in options.releases or ("bookworm", "trixie"):
            done = inside(release, options.where, deb, JOB + FIRST_STEPS, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=1200)
            print(f"== {release}, {deb.name}\n{done.stdout}", flush=True)
            check(done.returncode == 0, f"{release}: failed ({done.returncode})")
    print("right")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(str(failure))
