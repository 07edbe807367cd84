// What node daemons say to each other of the files in their memory: a stream of frames, whose tags were
// right.
#include <algorithm>

#include "base/error.h"
#include "fuzz.h"
#include "transfer/frame.h"

namespace fermata::fuzz {
namespace {

using namespace transfer;

View view(Input input) { return {reinterpret_cast<const std::byte*>(input.data()), input.size()}; }

// What was read is written as it was.
void again(const wire::Bytes& written, View payload) {
    require(std::equal(written.begin(), written.end(), payload.begin(), payload.end()),
            "a payload is read as something else");
}

void look_at(Kind kind, View payload) {
    switch (kind) {
        case Kind::list:
        case Kind::read:
        case Kind::digest:
        case Kind::stream:
            return again(to_bytes(question_of(kind, payload)), payload);
        case Kind::names:
            for (const File& file : files_of(payload))
                require(may_be_asked_for(file.name) && file.name.find("..") != 0, "a name that leads out");
            return again(to_bytes(files_of(payload)), payload);
        case Kind::size:
        case Kind::arrived:
            return again(to_bytes(size_of(payload)), payload);
        case Kind::sum:
            return again(to_bytes(sum_of(payload)), payload);
        case Kind::refused:
            require(line_of(payload).find('\n') == std::string::npos, "a refusal of more than one line");
            return;
        case Kind::end:
        case Kind::data:
            return;
    }
}

Verdict run(Input input) {
    try {
        for (View left = view(input); !left.empty();) {
            if (left.size() < kHead) fail("half a head");
            const Head head = read_head(left.first(kHead), kMostData);
            if (head.length > left.size() - kHead) fail("half a frame");
            look_at(head.kind, left.subspan(kHead, head.length));
            left = left.subspan(kHead + head.length);
        }
        return Verdict::accepted;
    } catch (const Error& error) {
        require(std::string(error.what()).find('\n') == std::string::npos, "an error of more than one line");
        return Verdict::refused;
    }
}

std::vector<Bytes> seeds() {
    Bytes all;
    auto add = [&](Kind kind, const wire::Bytes& payload) {
        for (std::byte b : write_head({static_cast<uint32_t>(payload.size()), kind}))
            all.push_back(static_cast<uint8_t>(b));
        for (std::byte b : payload) all.push_back(static_cast<uint8_t>(b));
    };
    const std::string kept = "files/0123456789abcdef0123456789abcdef";
    add(Kind::list, to_bytes(Question{Kind::list, Generation(7), "", 0, 0}));
    add(Kind::names, to_bytes(std::vector<File>{{"rank-000003.img", 1 << 20}, {kept, 5}}));
    add(Kind::end, {});
    add(Kind::read, to_bytes(Question{Kind::read, Generation(7), kept, 1, 4}));
    add(Kind::size, to_bytes(Size{5, 4}));
    add(Kind::data, wire::Bytes(4));
    add(Kind::digest, to_bytes(Question{Kind::digest, Generation(7), "rank-000003.img", 0, 0}));
    add(Kind::sum, to_bytes(Sum{5, {}}));
    add(Kind::refused, to_bytes(std::string("nothing of gen-000008 is there")));
    return {all};
}

}  // namespace

const Target transfers{"transfers", run, nullptr, seeds, nullptr};

}  // namespace fermata::fuzz
