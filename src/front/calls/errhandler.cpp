// MPI_*_errhandler: making, setting and calling error handlers.
#include "front/objects/errhandler.h"

#include "front/objects/api.h"
#include "front/objects/session.h"

namespace fermata::front {
namespace {

// Open MPI 4.1 and MPICH 4.0 give this class for a null or unsuitable handler, and programs look for it.
constexpr int kBadHandler = FM_ERR_ARG;

ErrhandlerObject* make(Kind of, void* function, ErrhandlerAdapter adapter) {
    auto* handler = fm_new<ErrhandlerObject>();
    handler->of = of;
    handler->function = function;
    handler->adapter = adapter;
    give_handle(handler);
    return handler;
}

// The handler may be set on objects of this kind.
bool suits(const ErrhandlerObject* handler, Kind of) {
    return handler != nullptr && (handler->predefined || handler->of == of);
}

void replace(ErrhandlerObject** slot, ErrhandlerObject* with) {
    errhandler_ref(with);
    ErrhandlerObject* old = *slot;
    *slot = with;
    errhandler_unref(old);
}

}  // namespace

extern "C" {

int fm_raise(Kind kind, uint32_t object, int code, const char* function) {
    Call call(function);
    switch (kind) {
        case Kind::comm:
            return call.finish(Comm{object}, code);
        case Kind::win:
            return call.finish(Win{object}, code);
        case Kind::file:
            return call.finish(File{object}, code);
        case Kind::session:
            return call.finish(Session{object}, code);
        default:
            return call.finish(code);
    }
}

Kind fm_errhandler_owner(Errhandler errhandler) {
    ErrhandlerObject* object = find(errhandler);
    return object != nullptr && !object->predefined ? object->of : Kind::none;
}
void fm_errhandler_calls(Errhandler errhandler, ErrhandlerAdapter adapter) {
    ErrhandlerObject* object = find(errhandler);
    if (object != nullptr && !object->predefined) object->adapter = adapter;
}

int fm_Errhandler_free(Errhandler* errhandler) {
    Call call("MPI_Errhandler_free");
    ErrhandlerObject* object = find(*errhandler);
    if (object == nullptr) return call.finish(kBadHandler);
    // Also right for predefined ones: MPI_Comm_get_errhandler may have given them out.
    errhandler_unref(object);
    *errhandler = FM_ERRHANDLER_NULL;
    return FM_SUCCESS;
}

int fm_Comm_create_errhandler(void* fn, ErrhandlerAdapter adapter, Errhandler* errhandler) {
    Call call("MPI_Comm_create_errhandler");
    *errhandler = Errhandler{make(Kind::comm, fn, adapter)->handle};
    return FM_SUCCESS;
}
int fm_Win_create_errhandler(void* fn, ErrhandlerAdapter adapter, Errhandler* errhandler) {
    Call call("MPI_Win_create_errhandler");
    *errhandler = Errhandler{make(Kind::win, fn, adapter)->handle};
    return FM_SUCCESS;
}
int fm_File_create_errhandler(void* fn, ErrhandlerAdapter adapter, Errhandler* errhandler) {
    Call call("MPI_File_create_errhandler");
    *errhandler = Errhandler{make(Kind::file, fn, adapter)->handle};
    return FM_SUCCESS;
}
int fm_Session_create_errhandler(void* fn, ErrhandlerAdapter adapter, Errhandler* errhandler) {
    Call call("MPI_Session_create_errhandler");
    *errhandler = Errhandler{make(Kind::session, fn, adapter)->handle};
    return FM_SUCCESS;
}

int fm_Comm_set_errhandler(Comm comm, Errhandler errhandler) {
    Call call("MPI_Comm_set_errhandler");
    CommObject* object = find(comm);
    ErrhandlerObject* handler = find(errhandler);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    if (!suits(handler, Kind::comm)) return call.finish(comm, kBadHandler);
    replace(&object->errhandler, handler);
    return FM_SUCCESS;
}
int fm_Comm_get_errhandler(Comm comm, Errhandler* errhandler) {
    Call call("MPI_Comm_get_errhandler");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    errhandler_ref(object->errhandler);
    *errhandler = Errhandler{object->errhandler->handle};
    return FM_SUCCESS;
}
int fm_Comm_call_errhandler(Comm comm, int errorcode) {
    Call call("MPI_Comm_call_errhandler");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    // Success of this function, whatever the handler does with the code (MPI-4.0 9.5); a handler that returns
    // errors is asked for nothing.
    if (object->errhandler->does != ErrhandlerObject::Does::returns) call.finish(comm, errorcode);
    return FM_SUCCESS;
}

int fm_Win_set_errhandler(Win win, Errhandler errhandler) {
    Call call("MPI_Win_set_errhandler");
    WinObject* object = find(win);
    ErrhandlerObject* handler = find(errhandler);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (!suits(handler, Kind::win)) return call.finish(win, kBadHandler);
    replace(&object->errhandler, handler);
    return FM_SUCCESS;
}
int fm_Win_get_errhandler(Win win, Errhandler* errhandler) {
    Call call("MPI_Win_get_errhandler");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    errhandler_ref(object->errhandler);
    *errhandler = Errhandler{object->errhandler->handle};
    return FM_SUCCESS;
}
int fm_Win_call_errhandler(Win win, int errorcode) {
    Call call("MPI_Win_call_errhandler");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (object->errhandler->does != ErrhandlerObject::Does::returns) call.finish(win, errorcode);
    return FM_SUCCESS;
}

int fm_File_set_errhandler(File file, Errhandler errhandler) {
    Call call("MPI_File_set_errhandler");
    ErrhandlerObject* handler = find(errhandler);
    FileObject* object = find(file);
    if (object == nullptr && file != FM_FILE_NULL) return call.finish(file, FM_ERR_FILE);
    if (!suits(handler, Kind::file)) return call.finish(file, kBadHandler);
    replace(object != nullptr ? &object->errhandler : &file_null_errhandler, handler);
    return FM_SUCCESS;
}
int fm_File_get_errhandler(File file, Errhandler* errhandler) {
    Call call("MPI_File_get_errhandler");
    FileObject* object = find(file);
    if (object == nullptr && file != FM_FILE_NULL) return call.finish(file, FM_ERR_FILE);
    ErrhandlerObject* handler = object != nullptr ? object->errhandler : file_null_errhandler;
    errhandler_ref(handler);
    *errhandler = Errhandler{handler->handle};
    return FM_SUCCESS;
}
int fm_File_call_errhandler(File fh, int errorcode) {
    Call call("MPI_File_call_errhandler");
    FileObject* object = find(fh);
    if (object == nullptr && fh != FM_FILE_NULL) return call.finish(fh, FM_ERR_FILE);
    ErrhandlerObject* handler = object != nullptr ? object->errhandler : file_null_errhandler;
    if (handler->does != ErrhandlerObject::Does::returns) call.finish(fh, errorcode);
    return FM_SUCCESS;
}

int fm_Session_set_errhandler(Session session, Errhandler errhandler) {
    Call call("MPI_Session_set_errhandler");
    SessionObject* object = find(session);
    ErrhandlerObject* handler = find(errhandler);
    if (object == nullptr) return call.finish(session, FM_ERR_SESSION);
    if (!suits(handler, Kind::session)) return call.finish(session, kBadHandler);
    replace(&object->errhandler, handler);
    return FM_SUCCESS;
}
int fm_Session_get_errhandler(Session session, Errhandler* errhandler) {
    Call call("MPI_Session_get_errhandler");
    SessionObject* object = find(session);
    if (object == nullptr) return call.finish(session, FM_ERR_SESSION);
    errhandler_ref(object->errhandler);
    *errhandler = Errhandler{object->errhandler->handle};
    return FM_SUCCESS;
}
int fm_Session_call_errhandler(Session session, int errorcode) {
    Call call("MPI_Session_call_errhandler");
    SessionObject* object = find(session);
    if (object == nullptr) return call.finish(session, FM_ERR_SESSION);
    if (object->errhandler->does != ErrhandlerObject::Does::returns) call.finish(session, errorcode);
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
