#include "lower/text_ranges.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/ranges.h"
#include "split/pages/residency.h"

namespace fermata::lower {
namespace {

// Units of this size have a file of their own; smaller ones share one, which all ranks have in common that
// have all of them in common.
constexpr uint64_t kOwnFile = 1 << 20;

std::vector<TextUnit>& remembered() {
    static std::vector<TextUnit> units;
    return units;
}

bool read_only(const split::MapEntry& map) {
    return map.kind == split::MapKind::anonymous && (map.prot & PROT_READ) && !(map.prot & PROT_WRITE);
}

}  // namespace

std::vector<TextUnit> text_units(const split::MemoryTable& table) {
    std::map<std::string, TextUnit> files;
    std::vector<Range> others;
    split::PageScanner scanner;
    for (const split::MapEntry& map : table.maps) {
        if (!read_only(map) || map.runs.empty()) continue;
        if (map.name.starts_with("/")) {
            // Pages that were changed before they were made read-only are this rank's own.
            auto text = difference(map.runs, scanner.touched(map.range, true));
            auto& unit = files[map.name];
            unit.insert(unit.end(), text.begin(), text.end());
        } else {
            others.insert(others.end(), map.runs.begin(), map.runs.end());
        }
    }
    std::vector<TextUnit> units;
    TextUnit small;
    for (auto& [name, unit] : files) {
        uint64_t size = 0;
        for (const Range& range : unit) size += range.size();
        if (size >= kOwnFile)
            units.push_back(std::move(unit));
        else
            small.insert(small.end(), unit.begin(), unit.end());
    }
    if (!small.empty()) units.push_back(std::move(small));
    for (const TextUnit& unit : remembered())
        if (TextUnit left = intersection(unit, others); !left.empty()) units.push_back(std::move(left));
    for (TextUnit& unit : units)
        std::sort(unit.begin(), unit.end(), [](auto& a, auto& b) { return a.begin() < b.begin(); });
    return units;
}

void remember_text(const image::Reader& reader) {
    std::vector<TextUnit> units(reader.references().size());
    for (const image::Extent& extent : reader.extents()) {
        uint32_t source = reader.blocks()[extent.block].source;
        if (source == 0 || reader.references()[source - 1].kind != image::ReferenceKind::text) continue;
        TextUnit& unit = units[source - 1];
        append(unit, memory_of(extent));
    }
    std::erase_if(units, [](const TextUnit& unit) { return unit.empty(); });
    remembered() = std::move(units);
}

}  // namespace fermata::lower
