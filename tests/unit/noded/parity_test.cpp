// Parity over real connections between nodes: several daemons' parts in one process, each with its directory.
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "base/clock.h"
#include "base/error.h"
#include "erasure/names.h"
#include "level/memory.h"
#include "noded/parity_level.h"
#include "noded/parity_work.h"
#include "noded/peer_source.h"
#include "store/remove.h"
#include "transfer/server.h"

namespace fermata::noded {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kJob = 0x1122334455667788;
constexpr Generation kGeneration(7);

// What a daemon has of this.
struct Daemon {
    OwnNode own;
    std::unique_ptr<transfer::Server> server;
    std::vector<wire::Message> said;
    std::unique_ptr<ParityLevel> parity;
};

class ParityTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/dev/shm/fermata-parity-XXXXXX";
        root_ = ::mkdtemp(name);
    }
    void TearDown() override {
        daemons_.clear();
        fs::remove_all(root_);
    }

    void start(size_t nodes) {
        for (size_t i = 0; i < nodes; ++i) {
            fs::create_directory(at(i));
            auto& daemon = daemons_.emplace_back(std::make_unique<Daemon>());
            daemon->own = {
                kJob, fmt::format("n{}", i), files::Folder::at(at(i)), key_, {5000, [] { return false; }}};
            serve(*daemon);
            daemon->parity = std::make_unique<ParityLevel>(
                [&said = daemon->said](const wire::Message& message) { said.push_back(message); });
        }
    }
    void serve(Daemon& daemon) {
        daemon.server = std::make_unique<transfer::Server>(daemon.own.folder, kJob, key_, 5000);
    }
    // Two ranks' images, and one that is of another node's rank (its buddy's).
    void images(size_t node) {
        files::Folder generation = *files::Folder::at(at(node)).make(kGeneration.name());
        store::write_marker(generation, {kJob, kGeneration.number()});
        const size_t other = (node + 1) % daemons_.size();
        for (size_t rank : {2 * node, 2 * node + 1, 2 * other}) {
            std::mt19937 random(static_cast<unsigned>(rank));
            std::string text((1 << 20) + 1000 * rank, '\0');
            for (char& c : text) c = static_cast<char>(random());
            std::ofstream(file(node, rank), std::ios::binary) << text;
            wanted_[rank] = text;
        }
    }
    fs::path at(size_t node) const { return root_ / fmt::format("n{}", node); }
    fs::path file(size_t node, size_t rank) const {
        return at(node) / kGeneration.name() / image::image_name(Rank(static_cast<uint32_t>(rank)));
    }
    wire::PeerGroup group(uint32_t losses) {
        wire::PeerGroup group{kGeneration, losses, {}, {}};
        for (size_t i = 0; i < daemons_.size(); ++i)
            group.peers.push_back({daemons_[i]->own.name,
                                   daemons_[i]->server->addresses(),
                                   {{static_cast<int32_t>(2 * i), 2}}});
        return group;
    }
    // Until each of `from` has said something; all of that.
    std::vector<wire::Message> answers(const std::vector<size_t>& from) {
        std::vector<wire::Message> all;
        const double end = monotonic_s() + 60;
        for (size_t i : from) {
            Daemon& daemon = *daemons_[i];
            while (daemon.said.empty() && monotonic_s() < end) {
                std::vector<pollfd> fds;
                daemon.parity->add_to(fds);
                ::poll(fds.data(), fds.size(), 100);
                daemon.parity->serve();
            }
            all.insert(all.end(), daemon.said.begin(), daemon.said.end());
            daemon.said.clear();
        }
        return all;
    }
    void encode_all(uint32_t losses) {
        const wire::Encode order{1, 0, {group(losses)}};
        std::vector<size_t> all;
        for (size_t i = 0; i < daemons_.size(); ++i) {
            daemons_[i]->parity->encode(order, daemons_[i]->own.name,
                                        [&own = daemons_[i]->own] { return own; });
            all.push_back(i);
        }
        for (const wire::Message& message : answers(all)) {
            auto* encoded = std::get_if<wire::Encoded>(&message);
            ASSERT_TRUE(encoded);
            EXPECT_EQ(encoded->error, "");
            EXPECT_GT(encoded->bytes, 0u);
        }
    }
    static std::string content(const fs::path& path) {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    fs::path root_;
    wire::Key key_ = wire::random_key();
    std::vector<std::unique_ptr<Daemon>> daemons_;
    std::map<size_t, std::string> wanted_;
};

TEST_F(ParityTest, WhatNodesHaveLostIsRebuiltFromOthers) {
    start(5);
    for (size_t i = 0; i < 5; ++i) images(i);
    encode_all(2);
    auto known = parity_in(daemons_[0]->own, {kGeneration, Generation(9)});
    ASSERT_EQ(known.size(), 1u);
    EXPECT_EQ(known[0].losses, 2u);
    ASSERT_EQ(known[0].peers.size(), 5u);
    EXPECT_EQ(known[0].peers[3], (wire::Peer{"n3", "", {{6, 2}}}));  // not what a buddy keeps there

    // Two nodes come back with nothing; one of them gets the ranks of both.
    for (size_t lost : {1u, 3u}) {
        fs::remove_all(at(lost));
        fs::create_directory(at(lost));
        daemons_[lost]->own.folder = files::Folder::at(at(lost));
        serve(*daemons_[lost]);
    }
    wire::PeerGroup peers = known[0];
    for (size_t i = 0; i < 5; ++i) peers.peers[i].addresses = daemons_[i]->server->addresses();
    const wire::Rebuild order{1, {{"n1", kGeneration, {{2, 2}, {6, 2}}}}, {peers}};
    for (size_t i = 0; i < 5; ++i)
        daemons_[i]->parity->rebuild(order, daemons_[i]->own.name, [&own = daemons_[i]->own] { return own; });
    const auto said = answers({1});
    ASSERT_EQ(said.size(), 1u);
    auto& rebuilt = std::get<wire::Rebuilt>(said[0]);
    EXPECT_EQ(rebuilt.error, "");
    EXPECT_EQ(rebuilt.done, order.repairs);
    for (size_t rank : {2u, 3u, 6u, 7u}) EXPECT_EQ(content(file(1, rank)), wanted_[rank]) << rank;
}

// An image whose text is damaged is as lost as one that is itself: the node has it, with its length, and
// another content.
TEST_F(ParityTest, TextOfTheNodesOwnIsRebuiltWhereAByteHasFlipped) {
    start(3);
    for (size_t i = 0; i < 3; ++i) images(i);
    const fs::path text = at(0) / kGeneration.name() / image::text_name({});
    std::ofstream(text, std::ios::binary) << std::string(5000, 't');
    encode_all(1);
    wire::PeerGroup peers = parity_in(daemons_[0]->own, {kGeneration}).at(0);
    for (size_t i = 0; i < 3; ++i) peers.peers[i].addresses = daemons_[i]->server->addresses();
    std::fstream(text, std::ios::in | std::ios::out | std::ios::binary).seekp(2500).put('x');
    const wire::Rebuild order{1, {{"n0", kGeneration, {{0, 1}}}}, {peers}};
    daemons_[0]->parity->rebuild(order, daemons_[0]->own.name, [&own = daemons_[0]->own] { return own; });
    const auto said = answers({0});
    EXPECT_EQ(std::get<wire::Rebuilt>(said.at(0)).error, "");
    EXPECT_EQ(content(text), std::string(5000, 't'));
    EXPECT_EQ(content(file(0, 0)), wanted_[0]);
}

TEST_F(ParityTest, WhatCannotBeRebuiltIsSaid) {
    start(3);
    for (size_t i = 0; i < 3; ++i) images(i);
    encode_all(1);
    wire::PeerGroup peers = parity_in(daemons_[0]->own, {kGeneration}).at(0);
    for (size_t i = 0; i < 3; ++i) peers.peers[i].addresses = i == 1 ? "" : daemons_[i]->server->addresses();
    fs::remove(file(0, 0));
    const wire::Rebuild order{1, {{"n0", kGeneration, {{0, 1}}}, {"n0", kGeneration, {{9, 1}}}}, {peers}};
    daemons_[0]->parity->rebuild(order, daemons_[0]->own.name, [&own = daemons_[0]->own] { return own; });
    const auto said = answers({0});
    auto& rebuilt = std::get<wire::Rebuilt>(said.at(0));
    EXPECT_TRUE(rebuilt.done.empty());
    EXPECT_NE(rebuilt.error, "");
    EXPECT_FALSE(fs::exists(file(0, 0)));
    EXPECT_FALSE(fs::exists(at(0) / kGeneration.name() / erasure::kRebuiltFile));
}

TEST_F(ParityTest, ANodeThatDoesNotAnswerEndsTheRound) {
    start(3);
    for (size_t i = 0; i < 3; ++i) images(i);
    const wire::Encode order{1, 0, {group(1)}};
    daemons_[2]->server.reset();
    for (size_t i : {0u, 1u})
        daemons_[i]->parity->encode(order, daemons_[i]->own.name, [&own = daemons_[i]->own] { return own; });
    size_t errors = 0;
    for (const wire::Message& message : answers({0, 1}))
        errors += !std::get<wire::Encoded>(message).error.empty();
    EXPECT_EQ(errors, 2u);
    EXPECT_TRUE(parity_in(daemons_[0]->own, {kGeneration}).empty());
}

// Nobody has to wait for what does not come.
TEST_F(ParityTest, ItIsGivenUpAtOnce) {
    start(3);
    for (size_t i = 0; i < 3; ++i) images(i);
    // The others never say what they have.
    daemons_[0]->parity->encode({1, 0, {group(1)}}, daemons_[0]->own.name,
                                [&own = daemons_[0]->own] { return own; });
    const double begin = monotonic_s();
    daemons_[0]->parity->stop();
    EXPECT_LT(monotonic_s() - begin, 3);
    EXPECT_TRUE(daemons_[0]->said.empty());
}

// What another node is asked for ahead comes as it is, whatever is read of it then.
TEST_F(ParityTest, PartsThatWereAskedForAheadAreTaken) {
    start(2);
    for (size_t i = 0; i < 2; ++i) images(i);
    const wire::PeerGroup order = group(1);
    const erasure::Member other{1};
    const std::string name = image::image_name(Rank(2));
    const size_t part = 300'000;
    const auto is_read = [&](PeerSource& source, uint64_t offset) {
        std::string got(part, '\0');
        source.read(other, name, offset, got.data(), part);
        return got == wanted_[2].substr(offset, part);
    };
    PeerSource source(daemons_[0]->own, order);
    for (uint64_t at = 0; at < 3; ++at) source.expect(other, name, at * part, part);
    EXPECT_TRUE(is_read(source, 0));
    EXPECT_TRUE(is_read(source, part));
    EXPECT_TRUE(is_read(source, 17));  // not what comes next
    EXPECT_TRUE(is_read(source, 2 * part));
    // A file that is not there is said when it is read, and what was expected behind it is had all the same.
    source.expect(other, image::image_name(Rank(9)), 0, part);
    source.expect(other, name, 5, part);
    EXPECT_THROW(source.read(other, image::image_name(Rank(9)), 0, std::string(part, 0).data(), part), Error);
    EXPECT_TRUE(is_read(source, 5));
    source.expect(other, name, 0, part);
    daemons_[1]->server.reset();
    try {
        EXPECT_TRUE(is_read(source, 0));  // it may have come before
    } catch (const Error&) {
    }
    EXPECT_THROW(static_cast<void>(is_read(source, 5)), Error);
    source.expect(other, name, 0, part);  // nobody is there: the read says so
    EXPECT_THROW(static_cast<void>(is_read(source, 0)), Error);
}

}  // namespace
}  // namespace fermata::noded
