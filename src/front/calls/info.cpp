// MPI_Info_*: dictionaries of the upper half, nothing crosses.
#include "front/objects/api.h"
#include "front/objects/objects.h"

namespace fermata::front {
namespace {

// The standard ABI's limits, terminator included; an ABI with shorter buffers truncates on its side.
constexpr size_t kMaxKey = FM_MAX_INFO_KEY;
constexpr size_t kMaxValue = FM_MAX_INFO_VAL;

int check_key(const char* key) {
    if (key == nullptr) return FM_ERR_INFO_KEY;
    size_t length = __builtin_strlen(key);
    return length == 0 || length >= kMaxKey ? FM_ERR_INFO_KEY : FM_SUCCESS;
}

void copy_text(char* to, size_t room, const Text& text) {
    if (room == 0) return;
    size_t n = text.size() < room - 1 ? text.size() : room - 1;
    __builtin_memcpy(to, text.data(), n);
    to[n] = 0;
}

}  // namespace

extern "C" {

int fm_Info_create(Info* info) {
    Call call("MPI_Info_create");
    *info = Info{make_info({})};
    return FM_SUCCESS;
}

int fm_Info_create_env(int argc, char** argv, Info* info) {
    Call call("MPI_Info_create_env");
    objects_boot();
    InfoObject* env = find(FM_INFO_ENV);
    *info = Info{make_info(env != nullptr ? env->pairs : InfoPairs{})};
    return FM_SUCCESS;
}

int fm_Info_dup(Info info, Info* newinfo) {
    Call call("MPI_Info_dup");
    InfoObject* object = find(info);
    if (object == nullptr) return call.finish(FM_ERR_INFO);
    *newinfo = Info{make_info(object->pairs)};
    return FM_SUCCESS;
}

int fm_Info_free(Info* info) {
    Call call("MPI_Info_free");
    InfoObject* object = find(*info);
    if (object == nullptr || object->predefined) return call.finish(FM_ERR_INFO);
    take_handle(object);
    fm_delete(object);
    *info = FM_INFO_NULL;
    return FM_SUCCESS;
}

int fm_Info_set(Info info, const char* key, const char* value) {
    Call call("MPI_Info_set");
    InfoObject* object = find(info);
    if (object == nullptr || object->predefined) return call.finish(FM_ERR_INFO);
    if (int rc = check_key(key)) return call.finish(rc);
    if (value == nullptr || __builtin_strlen(value) >= kMaxValue) return call.finish(FM_ERR_INFO_VALUE);
    info_put(&object->pairs, key, value);
    return FM_SUCCESS;
}

int fm_Info_delete(Info info, const char* key) {
    Call call("MPI_Info_delete");
    InfoObject* object = find(info);
    if (object == nullptr || object->predefined) return call.finish(FM_ERR_INFO);
    if (int rc = check_key(key)) return call.finish(rc);
    if (!info_remove(&object->pairs, key)) return call.finish(FM_ERR_INFO_NOKEY);
    return FM_SUCCESS;
}

int fm_Info_get(Info info, const char* key, int valuelen, char* value, int* flag) {
    Call call("MPI_Info_get");
    InfoObject* object = find(info);
    if (object == nullptr) return call.finish(FM_ERR_INFO);
    if (int rc = check_key(key)) return call.finish(rc);
    if (valuelen < 0) return call.finish(FM_ERR_ARG);
    const Text* found = info_find(object->pairs, key);
    *flag = found != nullptr;
    // The buffer has valuelen + 1 bytes (MPI-4.0 10, "the terminator is not counted").
    if (found != nullptr) copy_text(value, static_cast<size_t>(valuelen) + 1, *found);
    return FM_SUCCESS;
}

int fm_Info_get_string(Info info, const char* key, int* buflen, char* value, int* flag) {
    Call call("MPI_Info_get_string");
    InfoObject* object = find(info);
    if (object == nullptr) return call.finish(FM_ERR_INFO);
    if (int rc = check_key(key)) return call.finish(rc);
    if (*buflen < 0) return call.finish(FM_ERR_ARG);
    const Text* found = info_find(object->pairs, key);
    *flag = found != nullptr;
    if (found != nullptr) {
        copy_text(value, static_cast<size_t>(*buflen), *found);
        *buflen = static_cast<int>(found->size()) + 1;
    }
    return FM_SUCCESS;
}

int fm_Info_get_valuelen(Info info, const char* key, int* valuelen, int* flag) {
    Call call("MPI_Info_get_valuelen");
    InfoObject* object = find(info);
    if (object == nullptr) return call.finish(FM_ERR_INFO);
    if (int rc = check_key(key)) return call.finish(rc);
    const Text* found = info_find(object->pairs, key);
    *flag = found != nullptr;
    if (found != nullptr) *valuelen = static_cast<int>(found->size());
    return FM_SUCCESS;
}

int fm_Info_get_nkeys(Info info, int* nkeys) {
    Call call("MPI_Info_get_nkeys");
    InfoObject* object = find(info);
    if (object == nullptr) return call.finish(FM_ERR_INFO);
    *nkeys = static_cast<int>(object->pairs.size());
    return FM_SUCCESS;
}

int fm_Info_get_nthkey(Info info, int n, char* key) {
    Call call("MPI_Info_get_nthkey");
    InfoObject* object = find(info);
    if (object == nullptr) return call.finish(FM_ERR_INFO);
    if (n < 0 || static_cast<size_t>(n) >= object->pairs.size()) return call.finish(FM_ERR_ARG);
    copy_text(key, kMaxKey, object->pairs[static_cast<size_t>(n)].key);
    return FM_SUCCESS;
}

int fm_Get_hw_resource_info(Info* hw_info) {
    Call call("MPI_Get_hw_resource_info");
    *hw_info = Info{make_info({})};
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
