// MPI_*_keyval and MPI_*_attr.
#include "front/objects/attribute.h"

#include "front/objects/api.h"

namespace fermata::front {
namespace {

bool is_world_keyval(int keyval) { return keyval >= FM_TAG_UB && keyval <= FM_UNIVERSE_SIZE; }

// A predefined attribute: C reads a pointer to the value, Fortran the value.
void write_predefined(void* attribute_val, void* cell, int64_t value, AttrLanguage language) {
    write_value(attribute_val, language == AttrLanguage::c ? cell : reinterpret_cast<void*>(value), language);
}

}  // namespace

extern "C" {

int fm_Comm_create_keyval(void* copy, CopyAdapter copy_adapter, void* remove, DeleteAdapter remove_adapter,
                          int* keyval, void* extra_state, AttrLanguage language) {
    Call call("MPI_Comm_create_keyval");
    *keyval = keyval_create(Owner::comm, copy, copy_adapter, remove, remove_adapter, extra_state, language);
    return FM_SUCCESS;
}
int fm_Type_create_keyval(void* copy, CopyAdapter copy_adapter, void* remove, DeleteAdapter remove_adapter,
                          int* keyval, void* extra_state, AttrLanguage language) {
    Call call("MPI_Type_create_keyval");
    *keyval = keyval_create(Owner::type, copy, copy_adapter, remove, remove_adapter, extra_state, language);
    return FM_SUCCESS;
}
int fm_Win_create_keyval(void* copy, CopyAdapter copy_adapter, void* remove, DeleteAdapter remove_adapter,
                         int* keyval, void* extra_state, AttrLanguage language) {
    Call call("MPI_Win_create_keyval");
    *keyval = keyval_create(Owner::win, copy, copy_adapter, remove, remove_adapter, extra_state, language);
    return FM_SUCCESS;
}

Kind fm_keyval_owner(int keyval) {
    Call call("MPII_Keyval_set_proxy");
    KeyvalObject* object = find_keyval(keyval);
    if (object == nullptr) return Kind::none;
    return object->owner == Owner::comm   ? Kind::comm
           : object->owner == Owner::type ? Kind::datatype
                                          : Kind::win;
}
void fm_keyval_is_fortran(int keyval, CopyAdapter copy, DeleteAdapter remove) {
    Call call("MPII_Keyval_set_proxy");
    KeyvalObject* object = find_keyval(keyval);
    if (object == nullptr) return;
    object->copy_adapter = copy;
    object->remove_adapter = remove;
    object->language = AttrLanguage::fortran_aint;
    __builtin_memcpy(&object->extra_state, object->extra_state, sizeof object->extra_state);
}

int fm_Comm_free_keyval(int* keyval) {
    Call call("MPI_Comm_free_keyval");
    return call.finish(keyval_free(Owner::comm, keyval));
}
int fm_Type_free_keyval(int* keyval) {
    Call call("MPI_Type_free_keyval");
    return call.finish(keyval_free(Owner::type, keyval));
}
int fm_Win_free_keyval(int* keyval) {
    Call call("MPI_Win_free_keyval");
    return call.finish(keyval_free(Owner::win, keyval));
}

int fm_Comm_set_attr(Comm comm, int keyval, void* value, AttrLanguage language) {
    Call call("MPI_Comm_set_attr");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    return call.finish(
        comm, attribute_set({Owner::comm, object->handle}, &object->attributes, keyval, value, language));
}
int fm_Type_set_attr(Datatype datatype, int keyval, void* value, AttrLanguage language) {
    Call call("MPI_Type_set_attr");
    TypeObject* object = find(datatype);
    if (object == nullptr) return call.finish(FM_ERR_TYPE);
    return call.finish(
        attribute_set({Owner::type, object->handle}, &object->attributes, keyval, value, language));
}
int fm_Win_set_attr(Win win, int keyval, void* value, AttrLanguage language) {
    Call call("MPI_Win_set_attr");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    return call.finish(
        win, attribute_set({Owner::win, object->handle}, &object->attributes, keyval, value, language));
}

int fm_Comm_get_attr(Comm comm, int keyval, void* attribute_val, int* flag, AttrLanguage language) {
    Call call("MPI_Comm_get_attr");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    if (is_world_keyval(keyval)) {
        int* cell;
        *flag = world_attribute(keyval, &cell);
        if (*flag) write_predefined(attribute_val, cell, *cell, language);
        return FM_SUCCESS;
    }
    return call.finish(comm,
                       attribute_get(Owner::comm, object->attributes, keyval, attribute_val, flag, language));
}
int fm_Type_get_attr(Datatype datatype, int keyval, void* attribute_val, int* flag, AttrLanguage language) {
    Call call("MPI_Type_get_attr");
    TypeObject* object = find(datatype);
    if (object == nullptr) return call.finish(FM_ERR_TYPE);
    return call.finish(attribute_get(Owner::type, object->attributes, keyval, attribute_val, flag, language));
}
int fm_Win_get_attr(Win win, int keyval, void* attribute_val, int* flag, AttrLanguage language) {
    Call call("MPI_Win_get_attr");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    *flag = 1;
    switch (keyval) {
        case FM_WIN_BASE:
            write_value(attribute_val, object->base, language);
            return FM_SUCCESS;
        case FM_WIN_SIZE:
            write_predefined(attribute_val, &object->size, object->size, language);
            return FM_SUCCESS;
        case FM_WIN_DISP_UNIT:
            write_predefined(attribute_val, &object->disp_unit, object->disp_unit, language);
            return FM_SUCCESS;
        case FM_WIN_CREATE_FLAVOR:
            write_predefined(attribute_val, &object->flavor, object->flavor, language);
            return FM_SUCCESS;
        case FM_WIN_MODEL:
            write_predefined(attribute_val, &object->model, object->model, language);
            return FM_SUCCESS;
        default:
            break;
    }
    return call.finish(win,
                       attribute_get(Owner::win, object->attributes, keyval, attribute_val, flag, language));
}

int fm_Comm_delete_attr(Comm comm, int keyval) {
    Call call("MPI_Comm_delete_attr");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    return call.finish(comm, attribute_delete({Owner::comm, object->handle}, &object->attributes, keyval));
}
int fm_Type_delete_attr(Datatype datatype, int keyval) {
    Call call("MPI_Type_delete_attr");
    TypeObject* object = find(datatype);
    if (object == nullptr) return call.finish(FM_ERR_TYPE);
    return call.finish(attribute_delete({Owner::type, object->handle}, &object->attributes, keyval));
}
int fm_Win_delete_attr(Win win, int keyval) {
    Call call("MPI_Win_delete_attr");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    return call.finish(win, attribute_delete({Owner::win, object->handle}, &object->attributes, keyval));
}

}  // extern "C"
}  // namespace fermata::front
