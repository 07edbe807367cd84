// Error classes, codes and their texts. The application's own ones are numbered from the standard's last code
// on.
#include "front/objects/error_codes.h"

#include "front/objects/api.h"

namespace fermata::front {
namespace {

// Texts in the order of the standard ABI's classes, which are dense from 0 (MPI-5.0 table of error classes).
constexpr const char* kTexts[] = {
    "MPI_SUCCESS: no error",
    "MPI_ERR_BUFFER: invalid buffer pointer",
    "MPI_ERR_COUNT: invalid count argument",
    "MPI_ERR_TYPE: invalid datatype",
    "MPI_ERR_TAG: invalid tag",
    "MPI_ERR_COMM: invalid communicator",
    "MPI_ERR_RANK: invalid rank",
    "MPI_ERR_REQUEST: invalid request",
    "MPI_ERR_ROOT: invalid root",
    "MPI_ERR_GROUP: invalid group",
    "MPI_ERR_OP: invalid reduce operation",
    "MPI_ERR_TOPOLOGY: invalid communicator topology",
    "MPI_ERR_DIMS: invalid topology dimension",
    "MPI_ERR_ARG: invalid argument of some other kind",
    "MPI_ERR_UNKNOWN: unknown error",
    "MPI_ERR_TRUNCATE: message truncated",
    "MPI_ERR_OTHER: known error not in list",
    "MPI_ERR_INTERN: internal error",
    "MPI_ERR_PENDING: pending request",
    "MPI_ERR_IN_STATUS: error code in status",
    "MPI_ERR_ACCESS: permission denied",
    "MPI_ERR_AMODE: invalid amode argument",
    "MPI_ERR_ASSERT: invalid assert argument",
    "MPI_ERR_BAD_FILE: invalid file name",
    "MPI_ERR_BASE: invalid base argument",
    "MPI_ERR_CONVERSION: error in data conversion",
    "MPI_ERR_DISP: invalid displacement",
    "MPI_ERR_DUP_DATAREP: data representation already defined",
    "MPI_ERR_FILE_EXISTS: file exists",
    "MPI_ERR_FILE_IN_USE: file already open",
    "MPI_ERR_FILE: invalid file handle",
    "MPI_ERR_INFO_KEY: invalid info key",
    "MPI_ERR_INFO_NOKEY: no such info key",
    "MPI_ERR_INFO_VALUE: invalid info value",
    "MPI_ERR_INFO: invalid info object",
    "MPI_ERR_IO: input/output error",
    "MPI_ERR_KEYVAL: invalid keyval",
    "MPI_ERR_LOCKTYPE: invalid lock type",
    "MPI_ERR_NAME: invalid service name",
    "MPI_ERR_NO_MEM: out of memory",
    "MPI_ERR_NOT_SAME: objects are not identical",
    "MPI_ERR_NO_SPACE: no space left on device",
    "MPI_ERR_NO_SUCH_FILE: no such file or directory",
    "MPI_ERR_PORT: invalid port",
    "MPI_ERR_QUOTA: out of quota",
    "MPI_ERR_READ_ONLY: file is read only",
    "MPI_ERR_RMA_ATTACH: memory cannot be attached to the window",
    "MPI_ERR_RMA_CONFLICT: conflicting accesses to window",
    "MPI_ERR_RMA_RANGE: target memory is not part of the window",
    "MPI_ERR_RMA_SHARED: memory cannot be shared",
    "MPI_ERR_RMA_SYNC: wrong synchronization of RMA calls",
    "MPI_ERR_SERVICE: unknown service name",
    "MPI_ERR_SIZE: invalid size",
    "MPI_ERR_SPAWN: could not spawn processes",
    "MPI_ERR_UNSUPPORTED_DATAREP: data representation not supported",
    "MPI_ERR_UNSUPPORTED_OPERATION: operation not supported",
    "MPI_ERR_WIN: invalid window",
    "MPI_ERR_RMA_FLAVOR: wrong flavor of window",
    "MPI_ERR_PROC_ABORTED: a peer process aborted",
    "MPI_ERR_VALUE_TOO_LARGE: value too large for the type",
    "MPI_ERR_SESSION: invalid session",
    "MPI_ERR_ERRHANDLER: invalid error handler",
    "MPI_ERR_ABI: ABI not initialized or already initialized",
};
constexpr int kClasses = sizeof kTexts / sizeof *kTexts;
static_assert(kClasses == FM_ERR_ABI + 1);

// Beyond the standard; numbers of ours.
constexpr const char* kFailureTexts[] = {
    "MPIX_ERR_PROC_FAILED: a process failed",
    "MPIX_ERR_PROC_FAILED_PENDING: a failure leaves the request pending",
    "MPIX_ERR_REVOKED: the communicator was revoked",
};

constexpr int kFirstOwn = FM_ERR_LASTCODE + 1;

struct OwnCode {
    int error_class;  // itself for a class; 0: removed
    Text text;
};

struct OwnCodes {
    SpinLock lock;
    Vec<OwnCode> list;
};
constinit Immortal<OwnCodes> own_storage;
OwnCodes& own = own_storage.value;

// MPI_T's codes are classes, too; they have no texts here.
bool tools_class(int code) { return code >= FM_T_ERR_CANNOT_INIT && code <= FM_T_ERR_PVAR_NO_ATOMIC; }
bool failure_class(int code) { return code >= FM_ERR_PROC_FAILED && code <= FM_ERR_REVOKED; }
bool predefined_class(int code) { return (code >= 0 && code < kClasses) || failure_class(code); }
// Under the lock.
OwnCode* find_own(int code) {
    if (code < kFirstOwn || static_cast<size_t>(code - kFirstOwn) >= own.list.size()) return nullptr;
    OwnCode* found = &own.list[static_cast<size_t>(code - kFirstOwn)];
    return found->error_class == 0 ? nullptr : found;
}
bool known_class(int code) {
    if (predefined_class(code)) return true;
    OwnCode* found = find_own(code);
    return found != nullptr && found->error_class == code;
}

int add_own(int error_class) {
    int code = kFirstOwn + static_cast<int>(own.list.size());
    own.list.push_back({error_class == 0 ? code : error_class, {}});
    return code;
}

}  // namespace

int last_used_code() noexcept {
    SpinGuard guard(own.lock);
    return kFirstOwn - 1 + static_cast<int>(own.list.size());
}

const char* error_text(int code) noexcept {
    if (failure_class(code)) return kFailureTexts[code - FM_ERR_PROC_FAILED];
    if (predefined_class(code)) return kTexts[code];
    if (tools_class(code)) return "an error of the tools interface";
    SpinGuard guard(own.lock);
    OwnCode* found = find_own(code);
    return found != nullptr ? found->text.c_str() : "unknown error code";
}

int error_class_of(int code) noexcept {
    if (predefined_class(code) || tools_class(code)) return code;
    SpinGuard guard(own.lock);
    OwnCode* found = find_own(code);
    return found != nullptr ? found->error_class : FM_ERR_UNKNOWN;
}

bool error_code_is_known(int code) noexcept {
    if (predefined_class(code)) return true;
    SpinGuard guard(own.lock);
    return find_own(code) != nullptr;
}

int add_error_class() noexcept {
    SpinGuard guard(own.lock);
    return add_own(0);
}

bool add_error_code(int error_class, int* code) noexcept {
    SpinGuard guard(own.lock);
    if (!known_class(error_class)) return false;
    *code = add_own(error_class);
    return true;
}

bool set_error_text(int code, const char* text) noexcept {
    SpinGuard guard(own.lock);
    OwnCode* found = find_own(code);
    if (found != nullptr) found->text = text;
    return found != nullptr;
}

bool remove_error_code(int code, bool wants_class) noexcept {
    SpinGuard guard(own.lock);
    OwnCode* found = find_own(code);
    if (found == nullptr || (found->error_class == code) != wants_class || !found->text.empty()) return false;
    for (const OwnCode& one : own.list)
        if (&one != found && one.error_class == code) return false;
    found->error_class = 0;
    return true;
}

}  // namespace fermata::front
