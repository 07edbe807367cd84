// The wire: what is written is read back, and no sequence of bytes does harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/error.h"
#include "wire/auth.h"
#include "wire/frame.h"

namespace fermata::wire {
namespace {

Bytes bytes_of(const std::string& text) {
    auto* at = reinterpret_cast<const std::byte*>(text.data());
    return Bytes(at, at + text.size());
}

std::vector<Message> samples() {
    Saved image{7,
                3,
                1ull << 40,
                "0123456789abcdef0123456789abcdef",
                "",
                12,
                {Generation(1), Generation(2)},
                3,
                {1, 2, 3, 4, 1ull << 40}};
    Hello hello{"id", 5, 64, 4711, "node17", "openmpi", "Open MPI 4.1.4", Generation(2)};
    return {
        Clock{bytes_of(std::string("\0\1\2", 3))},
        Begin{7, Generation(1), true},
        Freeze{7},
        Drain{7, 2},
        Save{7, "/d/gen", Generation(1), "forked"},
        Resume{7},
        Starting{3, "id"},
        Cancel{7, "a rank died"},
        Query{},
        FinalizeReleased{},
        Go{},
        Kill{},
        hello,
        Refuse{7, "inside MPI_Comm_spawn"},
        Frozen{7, 100, 2},
        Drained{7, 2, 100, 99, 1, 2},
        Captured{7, 2},
        image,
        Images{7,
               {{0, 1}, {3, 1}},
               {{1ull << 40, Digest{1, 2}}, {5, {}}},
               12,
               {Generation(1)},
               "why",
               {{3, 2, {1, 5}, {3, 4}, {2, 7}}}},
        Resumed{7, 1},
        ArrivedFinalize{1},
        Diagnosis{"MPI_Recv from 3", 5, 2},
        Warning{"w", 5},
        Restored{false, "no memory", 1, 6},
        Fatal{"f", 9},
        NodeHello{"node17", 1, "10.0.0.5:4711"},
        Joined{{{2, "node17", 64, "openmpi", "Open MPI 4.1.4", Generation(2), {{4, 2}}, {4711, 4712}}}},
        Gone{2, {{5, 1}}, true, 4711, "node17", 137},
        Placed{7, 3, 1 << 20},
        Places{7, {{3, 2}}, {1 << 20, 1ull << 40}},
        Sized{7, 3, 1 << 20},
        Sizes{7, {{3, 2}}, {1 << 20, 1 << 20}},
        Take{7},
        Closed{7, 2},
        Again{7, "a first synchronous send"},
        Leave{7},
        Leaving{3},
        Spare{},
        InStarter{3, 4711, "bash", "why"},
        Stand{true},
        Depart{},
        Warned{15},
        AskProgram{1ull << 40, true},
        OwnState{true, true, false, 2, 1ull << 40, Generation(3), 41, "/state"},
        Phase{RestartPhase::rebuild, 5, 2, 7},
        Launch{1,
               "mpich",
               "w",
               {{0, 2, 2}},
               {{4, {"lower", "--", "p"}, "/d", {"A=1"}}},
               {"a", "b"},
               4,
               true,
               65536},
        Signal{15, true},
        StartDaemons{{"ssh", "-x"}, "exec 'noded' --environment", {{64, "a"}, {65, "b"}}},
        NotStarted{64, "ssh a: exit code 255"},
        Input{1, "line\n", true},
        OutputTaken{1, 65536},
        Fence{1, {{0, 2}}, 3, 2, 4, std::string("a\0b", 3), "why"},
        AskRank{1, 0, 2, 3},
        RankAnswer{1, 0, 2, "data", ""},
        Ready{1, "b", 4, 3},
        Output{1, 2, true, "line\n"},
        RankEnded{2, 4711, "b", 9, RankEnd::finalized, 3},
        InputTaken{65536, true},
        Aborted{2, "b", 9, "why"},
        Renew{9,
              2,
              {"A=b", "C="},
              "mpich",
              "/lower-mpich",
              {"/l", "libmpi.so.12", "libmpich.so.12"},
              {{4, 2}},
              {{0, 2, 4}}},
        Stays{"0123", 3},
        Wrote{1, 2},
        CopyGone{3},
        Promoted{3, 4711, "node17", "how"},
        NoCopy{3, "node17", "why"},
        CopyMade{3, 4711, "node17"},
        CopyEnded{3, 4711, "node17", "how", "line"},
        EndCopies{{{4, 2}}},
        Inject{2, 3, 4711},
        Injected{2, 3, 4711, true, "node17"},
        Streams{3, 40},
        Cloned{3, "node17", "10.0.0.1:4711", "10.0.0.1:4712", 12, 0},
        StartCopy{2, 3, "node17", "10.0.0.1:4711", "10.0.0.1:4712", Generation(4), 8},
        LeaderDied{3, 4711, "node17", "how", 9},
        TakePlace{3, 12, 0, "how"},
        LogSize{3, 1ull << 28, 1ull << 40},
        AskLiving{3, 1ull << 40},
        Living{3, 1ull << 40, true},
        Waiting{{"abc", ""}},
        LogSaid{7, 3, Bytes(5)},
        LogsSaid{7, {{3, 2}}, {Bytes(5), Bytes(0)}},
        AskLog{7, true},
        LogOrder{7, 3, Bytes(4)},
        LogOrders{7, {{3, 2}}, {Bytes(1), Bytes(2)}},
        Moved{3, 4711, "openmpi", "Open MPI v4.1.4"},
        MakeRoom{7, Generation(2), Medium::local, {{4, 2}}},
        KeepCopies{{Generation(1), Generation(2)}, {Generation(1)}},
        Flush{3, {Generation(2)}, "/d", 1ull << 30, {{"a", {{4, 2}}}}, Medium::local},
        AskCopies{4, {Generation(2), Generation(3)}, {Generation(3)}, true},
        Inspect{4, {{"a", Generation(2), {{4, 2}}}}},
        Inspected{4, "a", {{Generation(2), 1, "line"}}, {{Generation(2), -1, "why"}}},
        Chosen{Generation(2), "/d/gen", "seal", true, "/m/gen", Medium::local},
        Room{7, "node17", "why", "10.0.0.5:1"},
        Flushed{3, "node17", 1ull << 40, "why"},
        Copies{"node17",
               {{Generation(2), 1, 1ull << 40, Digest{1, 2}}},
               {1, 3},
               "line",
               "10.0.0.5:1",
               {{Generation(2), 1, Digest{4}, {{"a", "", {{4, 2}}}}}},
               {{Generation(1), 2, 7, Digest{5}}},
               "10.0.0.5:2",
               4,
               {{Generation(2), 1, "why"}}},
        Fetch{3,
              true,
              9,
              {{"a", "b", "10.0.0.5:1", {Generation(1), Generation(2)}, {{4, 2}}, Digest{3}, Medium::local}},
              Medium::local},
        Fetched{3, "a", 1ull << 40, {{"b", "why", Medium::local}}},
        Encode{3, 9, {{Generation(2), 1, {}, {{"a", "10.0.0.5:1", {{4, 2}}}, {"b", "", {}}}}}},
        Encoded{3, "a", 1ull << 40, "why"},
        Rebuild{3, {{"a", Generation(2), {{4, 2}}}}, {{Generation(2), 1, Digest{4}, {{"b", "", {}}}}}},
        Rebuilt{3, "a", {{"a", Generation(2), {{4, 2}}}}, "why"},
        Order{1ull << 40, encode(Freeze{7})},
        To{3, encode(Kill{})},
        Parent{70, 12, {{6, "10.0.0.5:4711"}, {-1, "10.0.0.1:99"}}, 5000, 30000},
        Beat{},
        Roll{3},
        Attach{70, 12, 2},
        Here{2, {70, 71}, {{70, "node17", 64, "openmpi", "Open MPI 4.1.4", {}, {{4, 1}}, {4711}}}},
        Missing{2, 71, Absence::moved}};
}

TEST(Frame, EveryMessageSurvivesTheTrip) {
    ASSERT_EQ(samples().size(), std::variant_size_v<Message::Variant>);
    Decoder decoder;
    for (const Message& message : samples()) {
        Bytes frame = encode(message);
        for (std::byte b : frame) {
            EXPECT_FALSE(decoder.next());
            decoder.feed(&b, 1);
        }
        auto back = decoder.next();
        ASSERT_TRUE(back) << name_of(message) << ": " << decoder.error();
        EXPECT_EQ(back->index(), message.index());
        EXPECT_EQ(encode(*back), frame) << name_of(message);
    }
}

TEST(Frame, TypesAreUnique) {
    std::vector<uint16_t> seen;
    for (const Message& message : samples()) {
        auto type = std::visit([](const auto& m) { return m.kType; }, message);
        EXPECT_EQ(std::count(seen.begin(), seen.end(), type), 0) << name_of(message);
        seen.push_back(type);
    }
}

TEST(Frame, RefusesAPhaseThatIsNone) {
    for (uint32_t word = 0; word < 10; ++word) {
        Bytes frame = encode(Phase{RestartPhase::load, 5, 2, 7});
        frame[kHeaderSize] = static_cast<std::byte>(word);
        Decoder decoder;
        decoder.feed(frame.data(), frame.size());
        auto back = decoder.next();
        ASSERT_EQ(back.has_value(), word >= 1 && word <= 6) << word;
        if (!back) continue;
        EXPECT_STRNE(name_of(std::get<Phase>(*back).phase), "");
    }
}

TEST(Frame, RandomBytesNeverCrash) {
    std::mt19937 random(1);
    for (int turn = 0; turn < 20000; ++turn) {
        Decoder decoder(1 << 16);
        std::string noise(random() % 200, '\0');
        for (char& c : noise) c = static_cast<char>(random());
        if (noise.size() >= 8 && turn % 2) {  // get past the header
            uint32_t length = static_cast<uint32_t>(noise.size() - 8);
            std::memcpy(noise.data(), &length, 4);
            noise[4] = static_cast<char>(random() % 110), noise[5] = 0;
            noise[6] = kWireVersion & 0xff, noise[7] = kWireVersion >> 8;
        }
        decoder.feed(noise.data(), noise.size());
        while (decoder.next()) {
        }
    }
}

TEST(Frame, BitFlipsAndCutsNeverCrash) {
    std::mt19937 random(2);
    auto all = samples();
    for (int turn = 0; turn < 20000; ++turn) {
        Bytes frame = encode(all[random() % all.size()]);
        frame[random() % frame.size()] ^= static_cast<std::byte>(1u << random() % 8);
        Decoder decoder(1 << 16);
        decoder.feed(frame.data(), turn % 3 ? frame.size() : random() % frame.size());
        while (decoder.next()) {
        }
    }
}

TEST(Frame, RefusesWhatItDoesNotKnow) {
    auto verdict = [](Bytes frame) {
        Decoder decoder(1000);
        decoder.feed(frame.data(), frame.size());
        EXPECT_FALSE(decoder.next());
        // Broken for good: a correct frame does not repair it.
        Bytes good = encode(Query{});
        decoder.feed(good.data(), good.size());
        EXPECT_FALSE(decoder.next());
        return decoder.error();
    };
    Bytes frame = encode(Freeze{1});
    Bytes type = frame, version = frame, length = frame, trailing = encode(Warning{"x"});
    type[4] = std::byte{99};
    EXPECT_NE(verdict(type), "");
    version[6] = std::byte{77};
    EXPECT_NE(verdict(version).find("version 77"), std::string::npos);
    length[2] = std::byte{1};
    EXPECT_NE(verdict(length).find("over the limit"), std::string::npos);
    trailing[0] = std::byte{6};
    trailing.push_back(std::byte{0});
    EXPECT_NE(verdict(trailing), "");
    Bytes lying = encode(Sizes{1, {}, {}});
    lying[12] = lying[13] = lying[14] = std::byte{0xff};
    EXPECT_NE(verdict(lying), "");
}

struct Pair {
    Handshake node, root;
};

void shake(Handshake& node, Handshake& root) {
    std::string up = node.hello(), down;
    for (int i = 0; i < 4; ++i) {
        down = root.feed(up.data(), up.size());
        up = node.feed(down.data(), down.size());
    }
}

TEST(Auth, BothSidesProveTheKey) {
    Key key = random_key();
    EXPECT_EQ(key_from_hex(to_hex(key)), key);
    Handshake node(Role::node, key), root(Role::root, key);
    shake(node, root);
    ASSERT_TRUE(node.done() && root.done());

    auto up = node.outgoing(), up_in = root.incoming();
    Decoder decoder(1000, up_in.get());
    Bytes first = encode(Query{}, up.get()), second = encode(Freeze{3}, up.get());
    decoder.feed(first.data(), first.size());
    decoder.feed(second.data(), second.size());
    EXPECT_TRUE(decoder.next());
    EXPECT_TRUE(decoder.next());
    decoder.feed(second.data(), second.size());  // replayed
    EXPECT_FALSE(decoder.next());
    EXPECT_TRUE(decoder.broken());
}

TEST(Auth, OtherKeyIsRefused) {
    Handshake node(Role::node, random_key()), root(Role::root, random_key());
    shake(node, root);
    EXPECT_TRUE(node.failed());
    EXPECT_FALSE(node.done() || root.done());
}

TEST(Auth, SealedFramesCannotBeChanged) {
    Key key = random_key();
    Handshake node(Role::node, key), root(Role::root, key);
    shake(node, root);
    Bytes clean = encode(Resume{1}, root.outgoing().get());
    for (size_t i = 0; i < clean.size(); ++i) {
        Bytes frame = clean;
        frame[i] ^= std::byte{1};
        auto seal = node.incoming();
        Decoder decoder(1000, seal.get());
        decoder.feed(frame.data(), frame.size());
        EXPECT_FALSE(decoder.next()) << "byte " << i;
    }
}

TEST(Auth, GarbageNeverCrashesTheHandshake) {
    std::mt19937 random(3);
    Key key = random_key();
    for (int turn = 0; turn < 2000; ++turn) {
        Handshake side(turn % 2 ? Role::node : Role::root, key);
        std::string noise(random() % 150, '\0');
        for (char& c : noise) c = static_cast<char>(random());
        if (turn % 3 == 0) noise.replace(0, std::min<size_t>(6, noise.size()), std::string("FMTA\1\0", 6));
        side.feed(noise.data(), noise.size());
        EXPECT_FALSE(side.done());
    }
}

TEST(Auth, DamagedKeyIsSaid) {
    EXPECT_THROW(key_from_hex("12"), Error);
    EXPECT_THROW(key_from_hex("zz"), Error);
}

}  // namespace
}  // namespace fermata::wire
