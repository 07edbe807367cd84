#include "lower/mutex_areas.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/ranges.h"
#include "lower/services.h"
#include "split/ids/ids.h"

namespace fermata::lower {

std::vector<split::threads::MutexArea> mutex_areas(const split::MemoryTable& table) {
    const auto ids = reinterpret_cast<uint64_t>(the_upper()->ids);
    const std::vector<Range> no_mutexes = {Range(ids, ids + sizeof *the_upper()->ids)};
    std::vector<const split::MapEntry*> maps;
    for (const split::MapEntry& map : table.maps)
        if ((map.prot & PROT_READ) && (map.prot & PROT_WRITE)) maps.push_back(&map);
    std::stable_sort(maps.begin(), maps.end(),
                     [](auto* a, auto* b) { return a->range.size() < b->range.size(); });
    std::vector<split::threads::MutexArea> areas;
    for (const split::MapEntry* map : maps)
        if (map->kind == split::MapKind::anonymous && !map->name.starts_with("/"))
            for (const Range& run : difference(map->runs, no_mutexes)) areas.push_back({run, false, true});
        else
            for (const Range& part : difference({map->range}, no_mutexes))
                areas.push_back({part, map->kind != split::MapKind::anonymous, false});
    return areas;
}

}  // namespace fermata::lower
