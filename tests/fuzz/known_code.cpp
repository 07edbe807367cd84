// The accesses of a library, kept in a file that a full disk may have cut off.
#include "split/thread_pointer/known_code.h"

#include "base/error.h"
#include "fuzz.h"

namespace fermata::fuzz {
namespace {

using split::thread_pointer::CodeHead;

CodeHead head() {
    CodeHead head;
    head.decoder.fill('d');
    head.zydis = 0x0003000200010000;
    head.device = 2049;
    head.inode = 77;
    head.size = 1 << 20;
    head.modified_ns = head.changed_ns = 1'764'147'600'123'456'789;
    head.begin = 0x1000;
    head.end = 0x90000;
    return head;
}

Verdict run(Input input) {
    const std::string_view bytes(reinterpret_cast<const char*>(input.data()), input.size());
    auto prefixes = split::thread_pointer::prefixes_in(bytes, head());
    if (!prefixes) return Verdict::refused;
    for (size_t i = 0; i < prefixes->size(); ++i)
        require((*prefixes)[i] >= head().begin && (*prefixes)[i] < head().end &&
                    (i == 0 || (*prefixes)[i] > (*prefixes)[i - 1]),
                "an access outside of the code, or out of order");
    require(split::thread_pointer::bytes_of(head(), *prefixes) == bytes, "it is not what is written");
    return Verdict::accepted;
}

// The file with its own checksum again.
void seal(Bytes& bytes) {
    constexpr size_t kSum = 16;
    if (bytes.size() < sizeof(CodeHead) + kSum) return;
    CodeHead head;
    std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
    split::thread_pointer::Prefixes prefixes((bytes.size() - sizeof head - kSum) / sizeof(uint32_t));
    if (!prefixes.empty())
        std::memcpy(prefixes.data(), bytes.data() + sizeof head, prefixes.size() * sizeof(uint32_t));
    const std::string sealed = split::thread_pointer::bytes_of(head, prefixes);
    bytes.assign(sealed.begin(), sealed.end());
}

std::vector<Bytes> seeds() {
    std::vector<Bytes> all;
    for (const split::thread_pointer::Prefixes& prefixes :
         {split::thread_pointer::Prefixes{}, {0x1000}, {0x1200, 0x1201, 0x8ffff}}) {
        const std::string bytes = split::thread_pointer::bytes_of(head(), prefixes);
        all.emplace_back(bytes.begin(), bytes.end());
    }
    return all;
}

Bytes meaning(Input input) {
    if (run(input) == Verdict::refused) throw Error("not what is expected");
    return {input.begin(), input.end()};
}

}  // namespace

const Target known_code{"known_code", run, seal, seeds, meaning};

}  // namespace fermata::fuzz
