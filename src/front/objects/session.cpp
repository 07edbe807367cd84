#include "front/objects/session.h"

#include "front/objects/api.h"

namespace fermata::front {
namespace {

struct Level {
    const char* name;
    int value;
};
constexpr Level kLevels[] = {{"MPI_THREAD_SINGLE", FM_THREAD_SINGLE},
                             {"MPI_THREAD_FUNNELED", FM_THREAD_FUNNELED},
                             {"MPI_THREAD_SERIALIZED", FM_THREAD_SERIALIZED},
                             {"MPI_THREAD_MULTIPLE", FM_THREAD_MULTIPLE}};

}  // namespace

int level_named(Info info, int otherwise) noexcept {
    InfoObject* hints = find(info);
    const Text* wanted = hints != nullptr ? info_find(hints->pairs, "thread_level") : nullptr;
    for (const Level& level : kLevels)
        if (wanted != nullptr && *wanted == level.name) return level.value;
    return otherwise;
}

const char* name_of_level(int value) noexcept {
    for (const Level& level : kLevels)
        if (level.value == value) return level.name;
    return "";
}

}  // namespace fermata::front
