#include "api/staging.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "api/fault.h"
#include "base/page.h"
#include "base/text.h"

namespace fermata::api {
namespace {

// As images of processes have it: upper memory begins there. No address means anything but a place.
constexpr uint64_t kFirstAddress = uint64_t{1} << 40;

}  // namespace

PageBuffer::~PageBuffer() {
    if (data_) ::munmap(data_, size_);
}

void PageBuffer::reserve(uint64_t bytes) {
    if (bytes <= size_) return;
    if (data_) ::munmap(data_, size_);
    data_ = nullptr;
    size_ = 0;
    const uint64_t size = page_up(bytes);
    void* made =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
        refuse(FERMATA_STORAGE, "no memory for a copy of {}: {}", human_size(bytes), std::strerror(errno));
    ::madvise(made, size, MADV_HUGEPAGE);
    data_ = static_cast<char*>(made);
    size_ = size;
}

void Staging::take(const State& state, int64_t step, bool global, bool borrow) {
    table_ = {};
    table_.step = step;
    pieces_.clear();
    // First what goes where, then the copies.
    struct Copy {
        const Entry* entry;
        const std::string* name;
        const Part* part;  // null: the object
        uint64_t at, bytes;
    };
    std::vector<Copy> copies;
    uint64_t at = 0;
    for (const auto& one : state.entries()) {
        const std::string& name = one.first;  // no binding: clang 14 has no lambdas that capture one
        const Entry& entry = one.second;
        SavedEntry& saved = table_.entries[name];
        static_cast<Shape&>(saved) = entry;
        if (entry.kind == Kind::global && !global) continue;
        auto add = [&](const Part* part, int64_t bytes) {
            if (bytes < 0) refuse(FERMATA_ARGUMENT, "{}: its size hook says {} bytes", visible(name), bytes);
            auto size = static_cast<uint64_t>(bytes);
            saved.parts.push_back({part ? part->grid : Grid{}, kFirstAddress + at, size});
            copies.push_back({&entry, &name, part, at, size});
            at += page_up(size);
        };
        if (entry.kind == Kind::object)
            add(nullptr, entry.hooks.size(entry.hooks.object));
        else
            for (const Part& part : entry.parts) add(&part, entry.bytes_of(part));
    }
    memory_.reserve(at);
    for (const Copy& copy : copies) {
        if (copy.bytes == 0 && copy.part) continue;
        char* to = memory_.data() ? memory_.data() + copy.at : nullptr;
        uint64_t left = 0;  // where it is
        if (copy.part) {
            const auto* from = static_cast<const char*>(copy.part->data);
            if (borrow) left = copy.bytes / kPage * kPage;
            if (left > 0) pieces_.push_back({kFirstAddress + copy.at, from, left});
            std::memcpy(to + left, from + left, copy.bytes - left);
        } else if (const Hooks& hooks = copy.entry->hooks;
                   int code = hooks.pack(hooks.object, to, static_cast<int64_t>(copy.bytes))) {
            refuse(FERMATA_ARGUMENT, "{}: its pack hook returned {}", visible(*copy.name), code);
        }
        const uint64_t whole = page_up(copy.bytes);
        if (whole == left) continue;
        std::memset(to + copy.bytes, 0, whole - copy.bytes);
        pieces_.push_back({kFirstAddress + copy.at + left, to + left, whole - left});
    }
}

uint64_t Staging::bytes() const {
    uint64_t sum = 0;
    for (const Piece& piece : pieces_) sum += piece.length;
    return sum;
}

}  // namespace fermata::api
