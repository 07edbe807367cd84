#include "front/objects/attribute.h"

#include "front/objects/api.h"
#include "front/objects/error_codes.h"

namespace fermata::front {
namespace {

// A value as a language reads it (MPI-4.0 19.3.7): C gets a pointer to what Fortran stored, Fortran gets the
// bits of the pointer that C stored, truncated or sign-extended to its kind.
void* seen_by(Attribute* attribute, AttrLanguage reader) {
    auto bits = reinterpret_cast<intptr_t>(attribute->value);
    switch (reader) {
        case AttrLanguage::c:
            if (attribute->language == AttrLanguage::c) return attribute->value;
            if (attribute->language == AttrLanguage::fortran_int) {
                auto narrow = static_cast<int32_t>(bits);
                __builtin_memcpy(&attribute->cell, &narrow, sizeof narrow);
            } else {
                attribute->cell = bits;
            }
            return &attribute->cell;
        case AttrLanguage::fortran_int:
            return reinterpret_cast<void*>(static_cast<intptr_t>(static_cast<int32_t>(bits)));
        case AttrLanguage::fortran_aint:
            return attribute->value;
    }
    return attribute->value;
}

void keyval_unref(KeyvalObject* keyval) {
    if (!drop(keyval)) return;
    take_handle(keyval);
    fm_delete(keyval);
}

Attribute* find_attribute(const Attributes& attributes, const KeyvalObject* keyval) {
    for (Attribute* attribute : attributes)
        if (attribute->keyval == keyval) return attribute;
    return nullptr;
}

int call_delete(Carrier carrier, Attribute* attribute) {
    KeyvalObject* keyval = attribute->keyval;
    if (keyval->remove == FM_NULL_DELETE_FN) return FM_SUCCESS;
    return keyval->remove_adapter(keyval->remove, carrier.handle, static_cast<int>(keyval->handle),
                                  seen_by(attribute, keyval->language), keyval->extra_state);
}

void forget(Attributes* attributes, Attribute* attribute) {
    for (size_t i = 0; i < attributes->size(); i++)
        if ((*attributes)[i] == attribute) {
            attributes->erase(attributes->begin() + static_cast<ptrdiff_t>(i));
            keyval_unref(attribute->keyval);
            fm_delete(attribute);
            return;
        }
}

void add(Attributes* attributes, KeyvalObject* keyval, void* value, AttrLanguage language) {
    ref(keyval);
    auto* attribute = fm_new<Attribute>();
    *attribute = {keyval, value, language, 0};
    attributes->push_back(attribute);
}

// The library's own attributes of communicators, as they were at the job's first start: a restart on another
// library must not change what the application has read.
struct WorldAttributes {
    int value[7];  // from FM_TAG_UB on
    bool found[7];
};
WorldAttributes world_attributes;
static_assert(FM_UNIVERSE_SIZE - FM_TAG_UB == 6);

}  // namespace

void write_value(void* attribute_val, void* value, AttrLanguage reader) noexcept {
    auto bits = reinterpret_cast<intptr_t>(value);
    switch (reader) {
        case AttrLanguage::c:
            __builtin_memcpy(attribute_val, &value, sizeof value);
            break;
        case AttrLanguage::fortran_int: {
            auto narrow = static_cast<int32_t>(bits);
            __builtin_memcpy(attribute_val, &narrow, sizeof narrow);
            break;
        }
        case AttrLanguage::fortran_aint: {
            auto wide = static_cast<int64_t>(bits);
            __builtin_memcpy(attribute_val, &wide, sizeof wide);
            break;
        }
    }
}

int keyval_create(Owner owner, void* copy, CopyAdapter copy_adapter, void* remove,
                  DeleteAdapter remove_adapter, void* extra_state, AttrLanguage language) noexcept {
    auto* keyval = fm_new<KeyvalObject>();
    keyval->owner = owner;
    keyval->copy = copy;
    keyval->remove = remove;
    keyval->copy_adapter = copy_adapter;
    keyval->remove_adapter = remove_adapter;
    keyval->extra_state = extra_state;
    keyval->language = language;
    return static_cast<int>(give_handle(keyval));
}

int keyval_free(Owner owner, int* keyval) noexcept {
    KeyvalObject* object = find_keyval(*keyval);
    if (object == nullptr || object->owner != owner) return FM_ERR_KEYVAL;
    if (!object->freed) {
        object->freed = true;
        keyval_unref(object);
    }
    *keyval = FM_KEYVAL_INVALID;
    return FM_SUCCESS;
}

int attribute_set(Carrier carrier, Attributes* attributes, int keyval, void* value,
                  AttrLanguage language) noexcept {
    KeyvalObject* object = find_keyval(keyval);
    if (object == nullptr || object->owner != carrier.owner) return FM_ERR_KEYVAL;
    if (Attribute* old = find_attribute(*attributes, object)) {
        if (int rc = call_delete(carrier, old)) return rc;
        old->value = value;
        old->language = language;
        return FM_SUCCESS;
    }
    add(attributes, object, value, language);
    return FM_SUCCESS;
}

int attribute_get(Owner owner, const Attributes& attributes, int keyval, void* attribute_val, int* flag,
                  AttrLanguage language) noexcept {
    KeyvalObject* object = find_keyval(keyval);
    if (object == nullptr || object->owner != owner) return FM_ERR_KEYVAL;
    Attribute* found = find_attribute(attributes, object);
    *flag = found != nullptr;
    if (found != nullptr) write_value(attribute_val, seen_by(found, language), language);
    return FM_SUCCESS;
}

int attribute_delete(Carrier carrier, Attributes* attributes, int keyval) noexcept {
    KeyvalObject* object = find_keyval(keyval);
    if (object == nullptr || object->owner != carrier.owner) return FM_ERR_KEYVAL;
    Attribute* found = find_attribute(*attributes, object);
    if (found == nullptr) return FM_ERR_KEYVAL;
    // Still there while the callback runs: it may look at it.
    if (int rc = call_delete(carrier, found)) return rc;
    forget(attributes, found);
    return FM_SUCCESS;
}

bool world_attribute(int keyval, int** cell) noexcept {
    const int which = keyval - FM_TAG_UB;
    if (keyval == FM_LASTUSEDCODE) {
        world_attributes.value[which] = last_used_code();
        world_attributes.found[which] = true;
    }
    *cell = &world_attributes.value[which];
    return world_attributes.found[which];
}

void world_attributes_start() noexcept {
    for (int keyval = FM_TAG_UB; keyval <= FM_UNIVERSE_SIZE; keyval++) {
        int64_t value = 0;
        int found = 0;
        if (LOWER(WorldAttribute)(keyval, &value, &found) != FM_SUCCESS) found = 0;
        // Open MPI 4.1 offers 2^31 - 1, MPICH 4.0 2^28 - 1: offer what both have.
        constexpr int64_t kCommonTagUb = (1 << 28) - 1;
        if (keyval == FM_TAG_UB && (!found || value > kCommonTagUb)) value = kCommonTagUb, found = 1;
        // MPICH has none where srun starts it; a job of one program is the first of its programs everywhere.
        if (keyval == FM_APPNUM && !found) value = 0, found = 1;
        world_attributes.value[keyval - FM_TAG_UB] = static_cast<int>(value);
        world_attributes.found[keyval - FM_TAG_UB] = found != 0;
    }
}

int attributes_copy(Carrier from, const Attributes& source, Attributes* target) noexcept {
    // By index: a callback may set attributes on the source.
    for (size_t i = 0; i < source.size(); i++) {
        Attribute* attribute = source[i];
        KeyvalObject* keyval = attribute->keyval;
        if (keyval->copy == FM_NULL_COPY_FN) continue;
        if (keyval->copy == FM_DUP_FN) {
            add(target, keyval, attribute->value, attribute->language);
            continue;
        }
        void* out = nullptr;
        int flag = 0;
        int rc = keyval->copy_adapter(keyval->copy, from.handle, static_cast<int>(keyval->handle),
                                      keyval->extra_state, seen_by(attribute, keyval->language), &out, &flag);
        if (rc != FM_SUCCESS) return rc;
        if (flag) add(target, keyval, out, keyval->language);
    }
    return FM_SUCCESS;
}

int attributes_delete_all(Carrier carrier, Attributes* attributes) noexcept {
    while (!attributes->empty()) {
        Attribute* last = attributes->back();
        if (int rc = call_delete(carrier, last)) return rc;
        forget(attributes, last);
    }
    return FM_SUCCESS;
}

}  // namespace fermata::front
