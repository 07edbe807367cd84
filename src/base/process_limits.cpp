#include "base/process_limits.h"

#include <sys/resource.h>

#include <algorithm>

namespace fermata {
namespace {

constexpr rlim_t kEnough = 1 << 20;  // files

struct Limit {
    __rlimit_resource_t which;
    rlimit users{};
    bool taken = false;
};
Limit g_files{RLIMIT_NOFILE}, g_core{RLIMIT_CORE};

template <class Change>
void take(Limit& limit, Change change) {
    if (limit.taken || ::getrlimit(limit.which, &limit.users) != 0) return;
    rlimit own = limit.users;
    change(own);
    limit.taken = ::setrlimit(limit.which, &own) == 0;
}

}  // namespace

void take_own_limits() {
    take(g_files,
         [](rlimit& own) { own.rlim_cur = std::max(own.rlim_cur, std::min(own.rlim_max, kEnough)); });
    take(g_core, [](rlimit& own) { own.rlim_cur = 0; });
}

void give_back_limits() {
    for (const Limit* limit : {&g_files, &g_core})
        if (limit->taken) ::setrlimit(limit->which, &limit->users);
}

}  // namespace fermata
