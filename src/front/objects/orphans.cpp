#include "front/objects/orphans.h"

#include "front/objects/object.h"

namespace fermata::front {
namespace {

struct Orphan {
    uint64_t uid, real;
};
constinit Immortal<Vec<Orphan>> storage;

}  // namespace

uint64_t orphan_taken(uint64_t uid) noexcept {
    Vec<Orphan>& all = storage.value;
    for (size_t i = 0; i < all.size(); i++) {
        if (all[i].uid != uid) continue;
        const uint64_t real = all[i].real;
        all.erase(all.begin() + static_cast<ptrdiff_t>(i));
        return real;
    }
    return 0;
}

void orphan_kept(uint64_t uid, uint64_t real) noexcept { storage.value.push_back({uid, real}); }

void orphans_forgotten() noexcept { storage.value.clear(); }

}  // namespace fermata::front
