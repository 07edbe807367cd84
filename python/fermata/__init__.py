"""Application-level checkpoints for Python: numpy arrays in place, communicators of mpi4py (docs/api.md).

    from mpi4py import MPI
    import fermata, numpy

    u = numpy.zeros((mine, ny))
    with fermata.Checkpoints(MPI.COMM_WORLD, "state", keep=3) as state:
        state.protect_array("u", u, shape=(nx, ny), offset=(first, 0))
        step = state.restore() or 0
        while step < steps:
            ...
            step += 1
            if step % 100 == 0:
                state.save(step)
"""
import ctypes
import os
import pathlib
import pickle

import numpy
from mpi4py import MPI

__all__ = ["Checkpoints", "CheckpointError"]

_TYPES = {"int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9, "float32": 10,
          "float64": 11, "complex64": 12, "complex128": 13, "bool": 6}
_I64, _INT, _PTR = ctypes.c_int64, ctypes.c_int, ctypes.c_void_p
_BCAST = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, _I64, _INT)
_GATHER = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, _PTR, _I64)
_EXCHANGE = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, _I64, _INT, _PTR, _I64, _INT)
_BEGIN_BCAST = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, _I64)
_TEST = ctypes.CFUNCTYPE(_INT, _PTR, _INT, ctypes.POINTER(_INT))
_RELEASE = ctypes.CFUNCTYPE(None, _PTR)
_SIZE = ctypes.CFUNCTYPE(_I64, _PTR)
_BYTES = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, _I64)


class CheckpointError(RuntimeError):
    """What a function of libfermata answered other than 0; `code` as in fermata_core.h."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


class _Mpi(ctypes.Structure):
    _fields_ = [("version", _INT), ("rank", _INT), ("size", _INT), ("now", _PTR), ("behind", _PTR), ("library", ctypes.c_char_p),
                ("bcast", _BCAST), ("allgather", _GATHER), ("exchange", _EXCHANGE), ("begin_gather", _GATHER),
                ("begin_bcast", _BEGIN_BCAST), ("test", _TEST), ("release", _RELEASE)]


def _load():
    here = pathlib.Path(__file__).resolve()
    places = [os.environ.get("FERMATA_LIBRARY"), here.parent / "libfermata.so.1", *(up / "lib" / "libfermata.so.1" for up in here.parents[:6]),
              here.parents[2] / "build" / "lib" / "libfermata.so.1"]
    for place in places:
        if place and os.path.exists(place):
            return ctypes.CDLL(str(place))
    return ctypes.CDLL("libfermata.so.1")


def _buffer(address, size):
    return (ctypes.c_char * size).from_address(address) if size else bytearray()


def _guarded(call):
    """MPI's own error codes; an exception must not go through C."""
    def inner(*words):
        try:
            call(*words)
            return 0
        except MPI.Exception as error:
            return error.Get_error_code() or 1
        except Exception:  # pylint: disable=broad-except
            return 1
    return inner


class Checkpoints:
    """The ranks of `comm` and a directory (include/fermata/fermata.h has the meaning of every function). Options are
    words: keep=3, interval="10m", layout="shared", compress="zstd", signals="yes", walltime="11h", key="file"."""

    def __init__(self, comm, directory="fermata-state", **options):
        self._library = library = _load()
        library.fermata_message.restype = ctypes.c_char_p
        library.fermata_message.argtypes = [_PTR]
        self._kept, self._handle = {}, _PTR()
        self._comms = {1: comm.Dup(), 2: comm.Dup()}
        self._request = MPI.REQUEST_NULL
        self._hooks = self._mpi(comm)
        words = ",".join(f"{key}={value}" for key, value in options.items())
        self._call(library.fermata_open_with, ctypes.byref(self._handle), ctypes.byref(self._hooks), os.fsencode(directory), words.encode(),
                   handle=False)

    def _mpi(self, comm):
        at = self._comms
        piece = 1 << 30

        def bcast(which, address, size, root):
            for begin in range(0, size, piece):
                at[which].Bcast([_buffer(address + begin, min(piece, size - begin)), MPI.BYTE], root)

        def allgather(which, mine, everything, size):
            at[which].Allgather([_buffer(mine, size), MPI.BYTE], [_buffer(everything, size * comm.size), MPI.BYTE])

        def exchange(which, out, out_size, to, back, back_size, source):
            requests = []
            if to >= 0 and out_size:
                requests += [at[which].Isend([_buffer(out + b, min(piece, out_size - b)), MPI.BYTE], to) for b in range(0, out_size, piece)]
            if source >= 0 and back_size:
                requests += [at[which].Irecv([_buffer(back + b, min(piece, back_size - b)), MPI.BYTE], source) for b in range(0, back_size, piece)]
            MPI.Request.Waitall(requests)

        def begin_gather(which, mine, everything, size):
            into = [_buffer(everything, size * comm.size), MPI.BYTE] if comm.rank == 0 else None
            self._request = at[which].Igather([_buffer(mine, size), MPI.BYTE], into, 0)

        def begin_bcast(which, address, size):
            self._request = at[which].Ibcast([_buffer(address, size), MPI.BYTE], 0)

        def test(_, wait, over):
            over[0] = 1
            if wait:
                self._request.Wait()
            else:
                over[0] = int(self._request.Test())

        def release(which):
            if not MPI.Is_finalized():
                at[which].Free()

        return _Mpi(1, comm.rank, comm.size, 1, 2, MPI.Get_library_version().encode(), _BCAST(_guarded(bcast)), _GATHER(_guarded(allgather)),
                    _EXCHANGE(_guarded(exchange)), _GATHER(_guarded(begin_gather)), _BEGIN_BCAST(_guarded(begin_bcast)), _TEST(_guarded(test)),
                    _RELEASE(lambda which: release(which)))

    def _call(self, function, *words, handle=True):
        code = function(self._handle, *words) if handle else function(*words)
        if code not in (0, 1):
            raise CheckpointError(code, self._library.fermata_message(self._handle).decode(errors="replace"))
        return code

    @staticmethod
    def _array(name, array):
        if not isinstance(array, numpy.ndarray) or not array.flags.c_contiguous or not array.flags.writeable:
            raise TypeError(f"{name}: a writable, C-contiguous numpy array is needed")
        if array.dtype.name not in _TYPES:
            raise TypeError(f"{name}: no element type for {array.dtype}")
        return _PTR(array.ctypes.data), _TYPES[array.dtype.name]

    def protect_global(self, name, array):
        """The same values on every rank."""
        data, kind = self._array(name, array)
        self._call(self._library.fermata_protect_global, name.encode(), data, kind, _I64(array.size))
        self._kept[name] = array

    def protect_local(self, name, array):
        """Each rank's own; the same number of ranks at a restore."""
        data, kind = self._array(name, array)
        self._call(self._library.fermata_protect_local, name.encode(), data, kind, _I64(array.size))
        self._kept[name] = array

    def protect_array(self, name, array, shape, offset, stride=None):
        """This rank's part, as large as `array`, of an array of that shape; any number of ranks at a restore."""
        data, kind = self._array(name, array)
        if not len(shape) == len(offset) == array.ndim or stride is not None and len(stride) != array.ndim:
            raise ValueError(f"{name}: shape, offset and stride have a number for each of {array.ndim} dimensions")
        numbers = _I64 * array.ndim
        self._call(self._library.fermata_protect_array, name.encode(), data, kind, array.ndim, numbers(*shape), numbers(*offset),
                   numbers(*array.shape), numbers(*stride) if stride is not None else None)
        self._kept[name] = array

    def protect_object(self, name, get, put):
        """Each rank's own: `get()` gives an object that pickle can save, `put(object)` takes it back."""
        state = {}

        def size(_):
            try:
                state["bytes"] = pickle.dumps(get())
                return len(state["bytes"])
            except Exception:  # pylint: disable=broad-except
                return -1

        def pack(_, address, length):
            ctypes.memmove(address, state.pop("bytes"), length)

        def unpack(_, address, length):
            put(pickle.loads(ctypes.string_at(address, length)))

        hooks = _SIZE(size), _BYTES(_guarded(pack)), _BYTES(_guarded(unpack))
        self._call(self._library.fermata_protect_object, name.encode(), None, *hooks)
        self._kept[name] = hooks

    def forget(self, name):
        self._call(self._library.fermata_forget, name.encode())
        self._kept.pop(name, None)

    def save(self, step):
        """Returns once everything is copied; a thread writes it."""
        self._call(self._library.fermata_save, _I64(step))

    def durable(self):
        """True once the newest save is on storage."""
        flag = _INT()
        self._call(self._library.fermata_test, ctypes.byref(flag))
        return bool(flag.value)

    def wait(self):
        self._call(self._library.fermata_wait)

    def restore(self):
        """The step that was saved, with everything protected as it was then; None: there is nothing."""
        step = _I64()
        return None if self._call(self._library.fermata_restore, ctypes.byref(step)) == 1 else step.value

    def should_checkpoint(self):
        return bool(self._library.fermata_should_checkpoint(self._handle))

    def should_exit(self):
        return bool(self._library.fermata_should_exit(self._handle))

    def close(self):
        """Waits for the save under way, and tells of its failure."""
        if self._handle:
            handle, self._handle = self._handle, _PTR()
            code = self._library.fermata_close(handle)
            if code:
                raise CheckpointError(code, self._library.fermata_message(None).decode(errors="replace"))

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.close()
