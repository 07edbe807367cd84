#include <algorithm>

#include "base/error.h"
#include "fuzz.h"
#include "wire/auth.h"
#include "wire/frame.h"

namespace fermata::fuzz {
namespace {

// A stream of frames, fed in pieces whose size the first byte chooses: whatever comes out must be what
// encode() writes, in the order in which it lies in the stream.
Verdict run_frames(Input input) {
    if (input.empty()) return Verdict::refused;
    size_t piece = 1 + input[0];
    Input stream = input.subspan(1);
    wire::Decoder decoder(1 << 16);
    std::vector<std::byte> again;
    for (size_t at = 0; at < stream.size(); at += piece) {
        decoder.feed(stream.data() + at, std::min(piece, stream.size() - at));
        while (auto message = decoder.next()) {
            wire::Bytes frame = wire::encode(*message);
            again.insert(again.end(), frame.begin(), frame.end());
            require(wire::name_of(*message)[0] != 0, "a message without a name");
        }
    }
    require(again.size() <= stream.size(), "more came out than went in");
    for (size_t i = 0; i < again.size(); ++i)
        require(again[i] == std::byte{stream[i]}, "a message is not what the bytes say");
    if (!decoder.broken()) return Verdict::accepted;
    require(!decoder.next() && !decoder.error().empty(), "a broken channel goes on");
    return Verdict::refused;
}

std::vector<Bytes> frame_seeds() {
    wire::Saved image{7,
                      3,
                      1ull << 40,
                      "0123456789abcdef0123456789abcdef",
                      "",
                      12,
                      {Generation(1), Generation(2)},
                      3,
                      {1, 2, 3, 4, 5}};
    wire::Group group{2, "node17", 64, "openmpi", "Open MPI 4.1.4", Generation(2), {{4, 2}}, {4711, 4712}};
    wire::Hello hello{"id", 5, 64, 4711, "node17", "openmpi", "Open MPI 4.1.4", Generation(2)};
    std::vector<wire::Message> messages = {
        wire::Clock{{std::byte{0}, std::byte{1}}},
        wire::Begin{7, Generation(1), true},
        wire::Freeze{7},
        wire::Drain{7, 2},
        wire::Save{7, "/d/gen", Generation(1), "forked"},
        wire::Resume{7},
        wire::Starting{3, "id"},
        wire::Cancel{7, "a rank died"},
        wire::Query{},
        wire::Go{},
        hello,
        wire::Frozen{7, 100, 2},
        wire::Take{7},
        wire::Closed{7, 2},
        wire::Again{7, "a first synchronous send"},
        wire::Drained{7, 2, 100, 99, 1, 2},
        image,
        wire::Images{
            7, {{0, 1}, {3, 1}}, {{9, {1}}, {5, {2}}}, 12, {Generation(1)}, "", {{3, 2, {5}, {3}, {9}}}},
        wire::Restored{false, "no memory", 1, 6},
        wire::Phase{wire::RestartPhase::adopt, 3, 1, 2},
        wire::Launch{
            1, "mpich", "w", {{0, 2, 2}}, {{4, {"lower", "--"}, "/d", {"A=1"}}}, {"a", "b"}, 4, true, 1},
        wire::Fence{1, {{0, 2}}, 3, 2, 4, "data", "why"},
        wire::RankEnded{2, 4711, "b", 9, wire::RankEnd::finalized, 3},
        wire::StartDaemons{{"ssh", "-x"}, "exec noded", {{64, "a"}, {65, "b"}}},
        wire::Joined{{group, group}},
        wire::Gone{2, {{5, 1}}, true, 4711, "node17", 137},
        wire::Leaving{3},
        wire::Places{7, {{3, 2}}, {1 << 20, 1 << 30}},
        wire::Sizes{7, {{3, 1}}, {1 << 20}},
        wire::Order{9, wire::encode(wire::Freeze{7})},
        wire::To{3, wire::encode(wire::Kill{})},
        wire::Parent{7, 12, {{6, "10.0.0.5:4711"}}, 5000, 30000},
        wire::Roll{3},
        wire::Attach{70, 12, 2},
        wire::Here{2, {70, 71}, {{70, "node17", 64, "openmpi", "Open MPI 4.1.4", {}, {{4, 1}}, {4711}}}},
        wire::Missing{2, 71, wire::Absence::silent},
        wire::MakeRoom{7, Generation(3)},
        wire::KeepCopies{{Generation(3), Generation(4)}, {Generation(3)}},
        wire::Flush{2, {Generation(3)}, "/d", 1 << 20, {{"node17", {{4, 2}}}}},
        wire::AskCopies{4, {Generation(3)}, {Generation(3)}, true},
        wire::Inspect{4, {{"node17", Generation(3), {{4, 1}}}}},
        wire::Inspected{4, "node17", {{Generation(3), 4, "it is there again"}}, {{Generation(3), -1, "cut"}}},
        wire::Chosen{Generation(3), "/d/gen-000003", "seal", true, "/dev/shm/x"},
        wire::Room{7, "node17", "too little memory", "10.0.0.5:4712"},
        wire::Flushed{2, "node17", 1 << 20, ""},
        wire::Copies{"node17",
                     {{Generation(3), 4, 1 << 20, {1, 2}}},
                     {4, 5},
                     "one is cut",
                     "10.0.0.5:4712",
                     {{Generation(3), 2, {9}, {{"node17", "", {{4, 1}}}, {"node18", "", {{5, 1}}}}}},
                     {{Generation(3), 5, 1 << 20, {3}}},
                     "10.0.0.5:4713",
                     4,
                     {{Generation(3), 4, "one is cut"}}},
        wire::Fetch{
            3, true, 1 << 20, {{"node17", "node18", "10.0.0.6:4712", {Generation(3)}, {{4, 1}}, {7}}}},
        wire::Fetched{3, "node17", 1 << 20, {{"node18", "it is gone"}}},
        wire::Encode{1, 0, {{Generation(3), 1, {}, {{"node17", "10.0.0.5:4712", {{4, 2}}}}}}},
        wire::Rebuild{1, {{"node17", Generation(3), {{4, 1}}}}, {{Generation(3), 1, {9}, {}}}},
        wire::Encoded{1, "node17", 1 << 20, ""}};
    std::vector<Bytes> all;
    Bytes together{13};
    for (const wire::Message& message : messages) {
        Bytes one{255};
        for (std::byte b : wire::encode(message)) {
            one.push_back(static_cast<uint8_t>(b));
            together.push_back(static_cast<uint8_t>(b));
        }
        all.push_back(one);
    }
    all.push_back(together);
    return all;
}

// A stranger at the root's port and at the node's: without the key nobody gets through.
Verdict run_handshake(Input input) {
    if (input.empty()) return Verdict::refused;
    static const wire::Key key = wire::random_key();
    size_t piece = 1 + input[0];
    Input stream = input.subspan(1);
    for (wire::Role role : {wire::Role::root, wire::Role::node}) {
        wire::Handshake shake(role, key);
        require(shake.hello().empty() == (role == wire::Role::root), "the node speaks first");
        for (size_t at = 0; at < stream.size() && !shake.failed(); at += piece)
            shake.feed(stream.data() + at, std::min(piece, stream.size() - at));
        require(!shake.done(), "a stranger was let in");
        require(!shake.failed() || !shake.error().empty(), "refused without a word");
    }
    return Verdict::refused;
}

std::vector<Bytes> handshake_seeds() {
    std::vector<Bytes> all;
    wire::Handshake node(wire::Role::node, {}), root(wire::Role::root, {});
    std::string hello = node.hello(), answer = root.feed(hello.data(), hello.size());
    std::string proof = node.feed(answer.data(), answer.size());
    for (const std::string& text : {hello, hello + proof, answer}) {
        Bytes one{63};
        one.insert(one.end(), text.begin(), text.end());
        all.push_back(one);
    }
    return all;
}

}  // namespace

const Target frames{"frames", run_frames, nullptr, frame_seeds, nullptr};
const Target handshake{"handshake", run_handshake, nullptr, handshake_seeds, nullptr};

}  // namespace fermata::fuzz
