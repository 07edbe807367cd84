#include "base/error.h"
#include "base/page.h"
#include "fuzz.h"
#include "split/memory/memory.h"

namespace fermata::fuzz {
namespace {

Verdict run(Input input) {
    std::string bytes(reinterpret_cast<const char*>(input.data()), input.size());
    try {
        split::MemoryTable table = split::decode(bytes);
        require(split::encode(table) == bytes, "it is not what encode() writes");
        uint64_t last = 0;
        for (const split::MapEntry& map : table.maps) {
            require(map.range.begin() >= last && map.range.begin() < map.range.end(), "mappings overlap");
            last = map.range.end();
            uint64_t at = map.range.begin();
            for (const Range& run : map.runs) {
                require(run.begin() >= at && run.begin() < run.end() && run.end() <= map.range.end() &&
                            run.begin() % 4096 == 0 && run.end() % 4096 == 0,
                        "an impossible run was accepted");
                at = run.end();
            }
        }
        return Verdict::accepted;
    } catch (const Error& error) {
        require(error.what()[0] != 0, "refused without a word");
        return Verdict::refused;
    }
}

std::vector<Bytes> seeds() {
    split::MemoryTable table;
    table.vdso = 0x10000000000;
    table.break_word = 0x10000002010;
    split::MapEntry map;
    map.range = {0x10000000000, 0x10000004000};
    map.prot = 3;
    map.name = "[heap]";
    map.runs = {{0x10000000000, 0x10000001000}, {0x10000002000, 0x10000004000}};
    table.maps.push_back(map);
    map.range = {0x10000004000, 0x10000005000};
    map.kind = split::MapKind::shared_file;
    map.name = "/tmp/x";
    map.runs.clear();
    table.maps.push_back(map);
    std::string text = split::encode(table);
    return {{text.begin(), text.end()}};
}

void seal(Bytes& bytes) {
    uint64_t size = bytes.size();
    if (size >= 40) std::memcpy(bytes.data() + 32, &size, 8);
}

}  // namespace

const Target memory_table{"memory_table", run, seal, seeds, nullptr};

}  // namespace fermata::fuzz
