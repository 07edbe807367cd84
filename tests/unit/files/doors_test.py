#!/usr/bin/env python3
"""Who opens, makes, removes or truncates files by path outside of src/files, and why that is right.

Checkpoint directories, generations, run directories, locks and whatever else lies where others may write are
reached through src/files only. What opens files by itself is listed here with the kind of file it opens; a new
place fails this test until it goes through src/files or says here why it need not.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1]) / "src"
CALLS = ("open openat fopen fopen64 opendir mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat "
         "symlink symlinkat truncate truncate64 remove chmod fchmodat chown lchown mkfifo mkfifoat mknod creat open_file "
         "read_file").split()
PATTERN = re.compile(r"(?<![\w.>])(?:::|std::)?(?:" + "|".join(CALLS) + r")\(|std::filesystem|\b[io]?fstream\b|\bSYS_openat\b")

KERNEL = "files of the kernel's: /proc, /sys, /dev"
PROGRAM = "the program and its libraries, read as ld.so reads them"
ITS_OWN = "the program's own files, as the program had them open or mapped"
INSTALLED = "what is installed: launchers, libraries, our own parts"
ALLOWED = {
    "lower/private_files.cpp": ITS_OWN + "; /proc, for who else has them open",
    "lower/log_files.cpp": "files of this process alone, without a name; one that had to have a name is new, and loses it at once",
    "noded/spool.cpp": "a file of this process alone, which never has a name",
    "lower/program_descriptors.cpp": KERNEL + "; what the program has open already, by the kernel's names of it",
    "base/error.cpp": "names a kind of exception, opens nothing",
    "base/fd.cpp": "open_file and read_file themselves, for the kinds below",
    "base/fd.h": "the same",
    "base/is_ending.cpp": KERNEL,
    "base/proc_text.cpp": KERNEL,
    "base/new_code.cpp": KERNEL,
    "base/process_limits.cpp": KERNEL,
    "cli/client.cpp": "compares paths, opens nothing",
    "cli/admin.cpp": KERNEL + "; a file without a name in the directory that the user names",
    "cli/admin_slurm.cpp": "Slurm's configuration, which its administrator writes, or the user names",
    "cli/doctor.cpp": INSTALLED,
    "cli/help.cpp": INSTALLED,
    "front/": "stands in for the program's own calls, or reads files of the kernel's",
    "api/handle.cpp": KERNEL,
    "api/veloc.cpp": "the configuration that the user names",
    "image/cipher.cpp": "FileKey::open, no file",
    "image/cipher.h": "FileKey::open, no file",
    "image/key.cpp": "the key file: regular, its owner's alone, asked by descriptor",
    "image/memory_file.cpp": "MemoryFile::open, a descriptor that is open",
    "image/memory_file.h": "MemoryFile::open, a descriptor that is open",
    "image/orphans.cpp": "Orphans::remove, no file",
    "image/orphans.h": "Orphans::remove, no file",
    "image/page_cache.cpp": KERNEL,
    "image/pager.cpp": KERNEL,
    "tree/agent_link.cpp": KERNEL,
    "tree/input.cpp": "the file behind the program's standard input, compared by inode",
    "launch/library.cpp": INSTALLED,
    "launch/mpiexec.cpp": KERNEL,
    "launch/programs.cpp": KERNEL,
    "noded/library_links.cpp": INSTALLED + "; links to it in the node daemon's directory",
    "launch/launcher_process.cpp": INSTALLED,
    "launch/session_name.cpp": "names in the place where Open MPI's launcher keeps its files; opens none",
    "launch/session_directory.cpp": "an empty directory of its own in the one that Open MPI's launchers share",
    "launch/library_at.cpp": INSTALLED + "; links to it in a run directory that is just born",
    "tree/local_socket.cpp": "sockets in run directories, by the directory's descriptor",
    "noded/main.cpp": "the log that the user names",
    "launch/program_place.cpp": PROGRAM + "; the directory that it starts from",
    "tree/root_address.cpp": KERNEL,
    "launch/own/outlet.cpp": KERNEL,
    "launch/own/own.cpp": "the hostfile that the user names, with a bound",
    "launch/own/starters.cpp": KERNEL,
    "launch/terminal_input.cpp": KERNEL,
    "noded/cores.cpp": KERNEL,
    "noded/ranks.cpp": KERNEL,
    "noded/neighbours.cpp": KERNEL,
    "noded/rank_copies.cpp": KERNEL,
    "noded/copies_elsewhere.cpp": KERNEL,
    "noded/node_copies.cpp": KERNEL + "; memory of a rank's process",
    "pmi/helper/main.cpp": "a directory of its own in the node daemon's run directory, 0700 and this user's",
    "level/domains.cpp": "a file that the user names, read whole",
    "lower/cpu.cpp": KERNEL,
    "lower/forked_writer.cpp": KERNEL,
    "lower/forked_writer.h": "Gate::open, no file",
    "lower/main.cpp": "tree::AgentLink link, no file",
    "lower/starter.cpp": "in the node daemon's run directory, 0700 and this user's",
    "split/address/maps.cpp": KERNEL,
    "split/partition/partition.cpp": KERNEL,
    "split/alloc/": "stands in for system calls",
    "split/fds/": "stands in for the lower half's own calls, or reads files of the kernel's",
    "split/loader/": "what ld.so reads on this system; files of the kernel's",
    "split/memory/dirty.cpp": KERNEL,
    "split/memory/guards.cpp": KERNEL,
    "split/memory/load.cpp": ITS_OWN,
    "split/pages/pagemap.cpp": KERNEL,
    "split/pages/soft_dirty.cpp": KERNEL,
    "split/process/": ITS_OWN,
    "split/shared/": "objects that ranks of the program share, by O_EXCL and O_NOFOLLOW, owners compared; files of the kernel's",
    "split/threads/": KERNEL,
    "starter/": PROGRAM + "; a file in the node daemon's run directory",
    "store/compact.cpp": "linkat between two folders' descriptors",
    "store/store.cpp": "Store::remove, through src/files",
    "store/store.h": "Store::remove, through src/files",
}


def main():
    used, bad = set(), []
    for path in sorted(SOURCE.rglob("*")):
        name = str(path.relative_to(SOURCE))
        if path.suffix not in (".cpp", ".h") or name.startswith("files/"):
            continue
        lines = [(number, line) for number, line in enumerate(path.read_text().splitlines(), 1)
                 if PATTERN.search(re.sub(r"//.*|\"(?:[^\"\\]|\\.)*\"", "", line))]
        if not lines:
            continue
        key = next((key for key in ALLOWED if name == key or (key.endswith("/") and name.startswith(key))), None)
        if key:
            used.add(key)
        else:
            bad += [f"src/{name}:{number}: {line.strip()}" for number, line in lines]
    for line in bad:
        print(f"{line}\n    goes through src/files, or stands in {pathlib.Path(__file__).name} with its reason")
    for key in sorted(set(ALLOWED) - used):
        print(f"{key} opens no file any more: take its line out of {pathlib.Path(__file__).name}")
    return 1 if bad or set(ALLOWED) != used else 0


sys.exit(main())
