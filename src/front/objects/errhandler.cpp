// Error handlers: what Call::finish ends in.
#include "front/objects/errhandler.h"

#include "front/core/bridge.h"
#include "front/objects/api.h"
#include "front/objects/session.h"

namespace fermata::front {

ErrhandlerObject errors_are_fatal, errors_abort, errors_return;
ErrhandlerObject* file_null_errhandler = &errors_return;

void errhandler_ref(ErrhandlerObject* handler) noexcept {
    if (handler != nullptr && !handler->predefined) ref(handler);
}

void errhandler_unref(ErrhandlerObject* handler) noexcept {
    if (handler == nullptr || handler->predefined || !drop(handler)) return;
    take_handle(handler);
    fm_delete(handler);
}

namespace {

[[noreturn]] void end_job(int code, const char* function) {
    Text line("fermata: ");
    line += function != nullptr ? function : "an MPI call";
    line += " failed on rank ";
    char digits[12];
    int at = sizeof digits;
    int rank = front.world_rank;
    do {
        digits[--at] = static_cast<char>('0' + rank % 10);
        rank /= 10;
    } while (rank != 0);
    line.append(digits + at, sizeof digits - static_cast<size_t>(at));
    line += ": ";
    line += error_text(code);
    bridge()->warn(line.c_str());
    LOWER(Abort)(to_real(FM_COMM_WORLD), code);
    bridge()->fatal("fermata: the job could not be aborted through MPI", 1);
    __builtin_trap();
}

// Finds the handler of errors that have no object: MPI-4.0 names MPI_COMM_SELF, MPI-3.1 MPI_COMM_WORLD. Serve
// programs of both: SELF's handler if the program changed it, else WORLD's.
ErrhandlerObject* default_handler(uint32_t* object) {
    CommObject& chosen = comm_self.errhandler != &errors_are_fatal ? comm_self : comm_world;
    *object = chosen.handle;
    return chosen.errhandler != nullptr ? chosen.errhandler : &errors_are_fatal;
}

}  // namespace

int handle_error(ErrhandlerObject* handler, uint32_t object, int code, const char* function) noexcept {
    switch (handler->does) {
        case ErrhandlerObject::Does::returns:
            return code;
        case ErrhandlerObject::Does::aborts_all:
        case ErrhandlerObject::Does::aborts:
            end_job(code, function);
        case ErrhandlerObject::Does::calls:
            break;
    }
    if (handler->adapter == nullptr) end_job(code, function);  // before MPI_Init there are no handlers
    int told = code;
    // The handler may free itself or the object it belongs to.
    errhandler_ref(handler);
    handler->adapter(handler->function, object, &told, function);
    errhandler_unref(handler);
    return code;
}

int raise_default(int rc, const char* function) noexcept {
    uint32_t object;
    ErrhandlerObject* handler = default_handler(&object);
    return handle_error(handler, object, rc, function);
}

int raise_on(Comm comm, int rc, const char* function) noexcept {
    CommObject* object = find(comm);
    if (object == nullptr || object->errhandler == nullptr) return raise_default(rc, function);
    return handle_error(object->errhandler, object->handle, rc, function);
}

int raise_on(Win win, int rc, const char* function) noexcept {
    WinObject* object = find(win);
    if (object == nullptr) return raise_default(rc, function);
    return handle_error(object->errhandler, object->handle, rc, function);
}

int raise_on(File file, int rc, const char* function) noexcept {
    FileObject* object = find(file);
    if (object == nullptr) return handle_error(file_null_errhandler, word_of(FM_FILE_NULL), rc, function);
    return handle_error(object->errhandler, object->handle, rc, function);
}

int raise_on(Session session, int rc, const char* function) noexcept {
    SessionObject* object = find(session);
    if (object == nullptr) return raise_default(rc, function);
    return handle_error(object->errhandler, object->handle, rc, function);
}

}  // namespace fermata::front
