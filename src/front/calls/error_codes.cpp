// MPI_Error_* and the calls that add and remove codes of the application.
#include "front/objects/error_codes.h"

#include "front/objects/api.h"

namespace fermata::front {
namespace {

int or_bad_argument(Call& call, bool done) { return call.finish(done ? FM_SUCCESS : FM_ERR_ARG); }

}  // namespace

extern "C" {

int fm_Error_class(int errorcode, int* errorclass) {
    Call call("MPI_Error_class");
    *errorclass = error_class_of(errorcode);
    return FM_SUCCESS;
}

int fm_Error_string(int errorcode, char* string, int* resultlen) {
    Call call("MPI_Error_string");
    const char* text = error_text(error_code_is_known(errorcode) ? errorcode : FM_ERR_UNKNOWN);
    size_t length = __builtin_strlen(text);
    __builtin_memcpy(string, text, length + 1);
    *resultlen = static_cast<int>(length);
    return FM_SUCCESS;
}

int fm_Add_error_class(int* errorclass) {
    Call call("MPI_Add_error_class");
    *errorclass = add_error_class();
    return FM_SUCCESS;
}

int fm_Add_error_code(int errorclass, int* errorcode) {
    Call call("MPI_Add_error_code");
    return or_bad_argument(call, add_error_code(errorclass, errorcode));
}

int fm_Add_error_string(int errorcode, const char* string) {
    Call call("MPI_Add_error_string");
    return or_bad_argument(call, string != nullptr && __builtin_strlen(string) < FM_MAX_ERROR_STRING &&
                                     set_error_text(errorcode, string));
}

int fm_Remove_error_class(int errorclass) {
    Call call("MPI_Remove_error_class");
    return or_bad_argument(call, remove_error_code(errorclass, true));
}

int fm_Remove_error_code(int errorcode) {
    Call call("MPI_Remove_error_code");
    return or_bad_argument(call, remove_error_code(errorcode, false));
}

int fm_Remove_error_string(int errorcode) {
    Call call("MPI_Remove_error_string");
    return or_bad_argument(call, set_error_text(errorcode, ""));
}

}  // extern "C"
}  // namespace fermata::front
