"""Is an image's memory table what /proc/self/maps said when it was written? Reads both without any of Fermata's code.

Every image holds, beside its memory table, the text of /proc/self/maps of that moment (blob `maps`). Rules, from
docs/architecture.md: addresses below 2^37, from 2^39 to 2^45 belong to the upper half, all others do not.
Formats: docs/formats/image.md, memory.md.
"""
import struct

from harness import check

PAGE = 4096


def upper(address):
    return address < 1 << 37 or 1 << 39 <= address < 1 << 45


def blobs(path):
    with open(path, "rb") as file:
        header = file.read(160)
        magic, _version, _page, _job, _gen, _rank, _ranks, cipher, _salt, _key, offset, size = struct.unpack_from(
            "<8sIIQIIII32s16sQQ", header)
        check(magic == b"FERMIMG1", f"{path} is no image")
        if cipher:
            return {}
        file.seek(offset)
        index = file.read(size)
    found, at = {}, 8
    for _ in range(struct.unpack_from("<Q", index)[0]):
        parts = []
        for _ in range(2):
            length, = struct.unpack_from("<Q", index, at)
            parts.append(index[at + 8:at + 8 + length])
            at += 8 + length
        found[parts[0].decode()] = parts[1]
    return found


def memory_table(blob):
    """(begin, end, prot, kind, name, saved bytes) of each map."""
    magic, _vdso, _break, count, size = struct.unpack_from("<8sQQQQ", blob)
    check(magic == b"FERMMEM1" and size == len(blob), "the memory table is not one")
    maps, at = [], 40
    for _ in range(count):
        begin, end, prot, kind, _flags, _advice, _offset, _object, _osize, _writable, name, runs = struct.unpack_from(
            "<QQiIIIQQQIIQ", blob, at)
        at += 72 + name
        text = blob[at - name:at].decode(errors="replace")
        saved = 0
        for _ in range(runs):
            low, high = struct.unpack_from("<QQ", blob, at)
            check(begin <= low < high <= end, f"a run outside of its map {begin:#x}")
            saved += high - low
            at += 16
        maps.append((begin, end, prot, kind, text, saved))
    check(at == len(blob), "bytes after the memory table")
    return maps


def merged(ranges):
    """Neighbours of equal protection as one: the kernel merges them too."""
    out = []
    for begin, end, prot in sorted(ranges):
        if out and out[-1][1] == begin and out[-1][2] == prot:
            out[-1] = (out[-1][0], end, prot)
        else:
            out.append((begin, end, prot))
    return out


def check_image(path):
    parts = blobs(path)
    if not parts:
        return  # encrypted
    table = memory_table(parts["memory"])
    process = []
    for line in parts["maps"].decode(errors="replace").split("\n")[:-1]:  # names may hold anything else
        span, access, *_ = line.split()
        begin, end = (int(word, 16) for word in span.split("-"))
        prot = sum(bit for bit, letter in ((1, "r"), (2, "w"), (4, "x")) if letter in access)
        check(upper(begin) == upper(end - 1), f"{path}: a mapping of both halves: {line}")
        if upper(begin):
            process.append((begin, end, prot))
            # what the lower half is made of must not lie there
            check(not any(name in line for name in ("lower-openmpi", "lower-mpich", "openmpi3/", "libfermata-split")),
                  f"{path}: the lower half in the window: {line}")
    for begin, end, _prot, _kind, name, _saved in table:
        check(upper(begin) and upper(end - 1), f"{path}: saved a mapping of the lower half: {begin:#x} {name}")
    want, got = merged(process), merged([entry[:3] for entry in table])
    missing = [f"{b:#x}-{e:#x} prot {p}" for b, e, p in want if (b, e, p) not in got]
    extra = [f"{b:#x}-{e:#x} prot {p}" for b, e, p in got if (b, e, p) not in want]
    check(not missing and not extra, f"{path}: not in the image: {missing}; not in the process: {extra}")
    check(len(table) > 10 and sum(entry[5] for entry in table) > 1 << 20, f"{path}: hardly anything is saved")
