// Frames are what node daemons say to each other about the files of generations in their memory: questions
// one way, answers the other (docs/formats/transfer.md). No I/O: bytes in, values out.
//
//     u32 length of the payload | u16 kind | u16 version | payload | tag (16 bytes)
//
// all little-endian. A reader trusts no number: what runs over the end, or is left over, is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/generation.h"
#include "image/checksum.h"
#include "wire/frame.h"

namespace fermata::transfer {

inline constexpr uint16_t kVersion = 2;
inline constexpr size_t kHead = wire::kHeaderSize;
// Data of one frame: enough for the network's speed, and it fits into a processor's cache.
inline constexpr uint32_t kMostData = 1u << 20;
inline constexpr uint32_t kMostQuestion = 4096;
inline constexpr size_t kMostName = 255;

using View = std::span<const std::byte>;

enum class Kind : uint16_t {
    // Questions.
    list = 1,    // the files of a generation; answer: names…, end
    read = 2,    // a part of a file; answer: size, data…
    digest = 3,  // of a whole file; answer: sum
    stream = 4,  // of the rank with this image; answer: data…, end; each is answered by arrived
    // Answers.
    names = 16,
    end = 17,
    size = 18,
    data = 19,
    sum = 20,
    refused = 21,  // instead of what was to come: one line
    arrived = 22,  // of a stream: the size up to where it has
};

struct Head {
    uint32_t length = 0;
    Kind kind = Kind::end;
};
// Throws Error: another version, a kind that there is not, or more than `most`.
Head read_head(View bytes, uint32_t most);
wire::Bytes write_head(Head head);

struct Question {
    Kind kind = Kind::list;
    Generation generation;
    std::string name;  // of list: none
    uint64_t offset = 0, length = 0;
    bool operator==(const Question&) const = default;
};

// A file of a generation, by its name in there: "rank-000003.img", "files/…".
struct File {
    std::string name;
    uint64_t bytes = 0;
    bool operator==(const File&) const = default;
};

// How long the file is, and how much data follows.
struct Size {
    uint64_t file = 0, follows = 0;
    bool operator==(const Size&) const = default;
};

struct Sum {
    uint64_t bytes = 0;
    image::Checksum checksum;
    bool operator==(const Sum&) const = default;
};

// True for names that may be asked for: no way out of the generation's directory, and nothing that is still
// being written.
bool may_be_asked_for(const std::string& name);

// Payloads, and back. Readers throw Error.
wire::Bytes to_bytes(const Question& question);
wire::Bytes to_bytes(const std::vector<File>& files);
wire::Bytes to_bytes(const Size& size);
wire::Bytes to_bytes(const Sum& sum);
wire::Bytes to_bytes(const std::string& line);
Question question_of(Kind kind, View payload);
std::vector<File> files_of(View payload);
Size size_of(View payload);
Sum sum_of(View payload);
std::string line_of(View payload);

}  // namespace fermata::transfer
