#include "api/veloc_blob.h"

#include <cstring>

#include "base/error.h"

namespace fermata::api {
namespace {

// Each number takes eight bytes, little-endian as the machine: version, regions (number, length), files
// (length of the name, length); then the names, then the bytes, in that order.
constexpr uint64_t kVersion = 1;

class Out {
  public:
    explicit Out(char* to) : at_(to) {}
    void number(uint64_t value) { bytes(&value, sizeof value); }
    void text(const std::string& text) { bytes(text.data(), text.size()); }

  private:
    void bytes(const void* from, size_t size) {
        if (size > 0) std::memcpy(at_, from, size);
        at_ += size;
    }
    char* at_;
};

class In {
  public:
    In(const char* from, size_t size) : at_(from), left_(size) {}
    uint64_t number() {
        uint64_t value;
        std::memcpy(&value, take(sizeof value), sizeof value);
        return value;
    }
    std::string text(uint64_t size) { return {take(size), size}; }
    size_t left() const { return left_; }

  private:
    const char* take(uint64_t size) {
        if (size > left_) throw Error("what was saved by VeloC's interface is cut off", ExitCode::damaged);
        const char* here = at_;
        at_ += size;
        left_ -= size;
        return here;
    }
    const char* at_;
    size_t left_;
};

struct Lengths {
    uint64_t name, bytes;
};

}  // namespace

size_t VelocBlob::size() const {
    size_t sum = sizeof(uint64_t) * (3 + 2 * (regions.size() + files.size()));
    for (auto& [id, bytes] : regions) sum += bytes.size();
    for (auto& [name, bytes] : files) sum += name.size() + bytes.size();
    return sum;
}

void VelocBlob::pack(char* to) const {
    Out out(to);
    out.number(kVersion);
    out.number(regions.size());
    out.number(files.size());
    for (auto& [id, bytes] : regions) {
        out.number(static_cast<uint64_t>(int64_t{id}));
        out.number(bytes.size());
    }
    for (auto& [name, bytes] : files) {
        out.number(name.size());
        out.number(bytes.size());
    }
    for (auto& [name, bytes] : files) out.text(name);
    for (auto& [id, bytes] : regions) out.text(bytes);
    for (auto& [name, bytes] : files) out.text(bytes);
}

VelocBlob VelocBlob::unpacked(const char* from, size_t size) {
    In in(from, size);
    auto wrong = [] {
        throw Error("what was saved by VeloC's interface is not as this Fermata saves it", ExitCode::damaged);
    };
    if (in.number() != kVersion) wrong();
    const uint64_t regions = in.number(), files = in.number();
    if (regions > size || files > size) wrong();  // each takes more than a byte
    std::vector<Lengths> of_regions, of_files;
    for (uint64_t i = 0; i < regions; ++i) {
        const auto id = static_cast<int64_t>(in.number());
        if (id != static_cast<int32_t>(id)) wrong();
        of_regions.push_back({static_cast<uint64_t>(id), in.number()});
    }
    for (uint64_t i = 0; i < files; ++i) {
        const uint64_t name = in.number();
        of_files.push_back({name, in.number()});
    }
    std::vector<std::string> names;
    for (const Lengths& one : of_files) names.push_back(in.text(one.name));
    VelocBlob blob;
    for (const Lengths& one : of_regions)
        if (!blob.regions.emplace(static_cast<int32_t>(one.name), in.text(one.bytes)).second) wrong();
    for (size_t i = 0; i < names.size(); ++i)
        if (!blob.files.emplace(names[i], in.text(of_files[i].bytes)).second) wrong();
    if (in.left() != 0) wrong();
    return blob;
}

}  // namespace fermata::api
