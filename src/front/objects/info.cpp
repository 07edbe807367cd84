#include "front/objects/info.h"

namespace fermata::front {

uint32_t make_info(const InfoPairs& pairs) noexcept {
    auto* info = fm_new<InfoObject>();
    info->pairs = pairs;
    return give_handle(info);
}

const Text* info_find(const InfoPairs& pairs, const char* key) noexcept {
    for (const InfoPair& pair : pairs)
        if (pair.key == key) return &pair.value;
    return nullptr;
}

void info_put(InfoPairs* pairs, const char* key, const char* value) noexcept {
    for (InfoPair& pair : *pairs)
        if (pair.key == key) {
            pair.value = value;
            return;
        }
    pairs->push_back({key, value});
}

bool info_remove(InfoPairs* pairs, const char* key) noexcept {
    for (size_t i = 0; i < pairs->size(); i++)
        if ((*pairs)[i].key == key) {
            pairs->erase(pairs->begin() + static_cast<ptrdiff_t>(i));
            return true;
        }
    return false;
}

}  // namespace fermata::front
