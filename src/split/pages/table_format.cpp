// encode/decode: docs/formats/memory.md.
#include <cstring>

#include "base/error.h"
#include "split/pages/table.h"

namespace fermata::split {
namespace {

constexpr char kMagic[8] = {'F', 'E', 'R', 'M', 'M', 'E', 'M', '1'};

struct Header {
    char magic[8];
    uint64_t vdso;
    uint64_t break_word;
    uint64_t maps;
    uint64_t bytes;  // of the whole table
};
struct Record {
    uint64_t begin, end;
    int32_t prot;
    uint32_t kind, flags, advice;
    uint64_t offset, object, object_size;
    uint32_t writable_file;
    uint32_t name_size;
    uint64_t runs;
};

struct Run {
    uint64_t begin, end;
};

class Input {
  public:
    explicit Input(std::span<const char> bytes) : bytes_(bytes) {}
    template <typename T>
    T take() {
        T value;
        std::memcpy(&value, skip(sizeof value), sizeof value);
        return value;
    }
    const char* skip(uint64_t size) {
        if (size > bytes_.size() - at_)
            fail("the image's memory table is cut off after {} bytes: damaged checkpoint", at_);
        const char* p = bytes_.data() + at_;
        at_ += size;
        return p;
    }
    uint64_t left() const { return bytes_.size() - at_; }

  private:
    std::span<const char> bytes_;
    size_t at_ = 0;
};

}  // namespace

std::string encode(const MemoryTable& table) {
    std::string out;
    auto put = [&](const auto& value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
    Header header{};
    std::memcpy(header.magic, kMagic, 8);
    header.vdso = table.vdso;
    header.break_word = table.break_word;
    header.maps = table.maps.size();
    put(header);
    for (const MapEntry& e : table.maps) {
        put(Record{e.range.begin(), e.range.end(), e.prot, uint32_t(e.kind), e.flags, e.advice, e.offset,
                   e.object, e.object_size, e.writable_file, uint32_t(e.name.size()), e.runs.size()});
        out += e.name;
        for (const Range& run : e.runs) put(Run{run.begin(), run.end()});
    }
    header.bytes = out.size();
    std::memcpy(out.data(), &header, sizeof header);
    decode(out);  // what a restart would refuse fails now, not then
    return out;
}

MemoryTable decode(std::span<const char> bytes) {
    Input in(bytes);
    auto header = in.take<Header>();
    if (std::memcmp(header.magic, kMagic, 8) != 0) fail("the image's memory table is of an unknown version");
    if (header.bytes != bytes.size())
        fail("the image's memory table has {} bytes instead of {}: damaged checkpoint", bytes.size(),
             header.bytes);
    MemoryTable table;
    table.vdso = header.vdso;
    table.break_word = header.break_word;
    uint64_t last = 0;
    for (uint64_t i = 0; i < header.maps; ++i) {
        auto r = in.take<Record>();
        MapEntry e;
        if (r.begin < last || r.end <= r.begin || (r.begin | r.end) & (kPage - 1) || r.kind > 3 ||
            r.writable_file > 1 || r.runs > in.left() / sizeof(Run))
            fail("the image's memory table has an impossible mapping at {:#x}: damaged checkpoint", r.begin);
        last = r.end;
        e.range = {r.begin, r.end};
        e.prot = r.prot;
        e.kind = MapKind(r.kind);
        e.flags = r.flags;
        e.advice = r.advice;
        e.offset = r.offset;
        e.object = r.object;
        e.object_size = r.object_size;
        e.writable_file = r.writable_file;
        e.name.assign(in.skip(r.name_size), r.name_size);
        uint64_t from = r.begin;
        for (uint64_t k = 0; k < r.runs; ++k) {
            auto run = in.take<Run>();
            if (run.begin < from || run.end <= run.begin || run.end > r.end ||
                (run.begin | run.end) & (kPage - 1))
                fail("the image's memory table has content outside its mapping at {:#x}: damaged checkpoint",
                     r.begin);
            e.runs.push_back({run.begin, run.end});
            from = run.end;
        }
        table.maps.push_back(std::move(e));
    }
    if (in.left() != 0) fail("the image's memory table has bytes after its end: damaged checkpoint");
    return table;
}

}  // namespace fermata::split
