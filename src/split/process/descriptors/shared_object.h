// The ranks' words to each other about an object at this checkpoint.
#pragma once

#include "split/shared/roster.h"

namespace fermata::split::process::descriptors {

// Null when it is this rank's alone, and a descriptor's only.
inline const shared::Object* shared_object(const shared::Key& key) {
    const shared::Object* object = shared::roster() ? shared::roster()->find(key) : nullptr;
    return object && (object->ranks.size() > 1 || !object->mapped.empty()) ? object : nullptr;
}

}  // namespace fermata::split::process::descriptors
