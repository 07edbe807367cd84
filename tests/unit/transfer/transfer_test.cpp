// A server and its clients over real sockets: files come as they are, and who lacks the key gets nothing.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "image/hash.h"
#include "store/remove.h"
#include "transfer/client.h"
#include "transfer/server.h"
#include "tree/listen.h"
#include "tree/root_address.h"

namespace fermata::transfer {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kJob = 0x1122334455667788;
const std::string kKept = "0123456789abcdef0123456789abcdef";

class TransferTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-transfer-XXXXXX";
        root_ = ::mkdtemp(name);
        folder_ = files::Folder::at(root_);
        files::Folder generation = *folder_.make("gen-000007");
        store::write_marker(generation, {kJob, 7});
        data_.resize(3 * kMostData + 12345);
        std::mt19937 random(20261126);
        for (char& c : data_) c = static_cast<char>(random());
        put("rank-000001.img", data_);
        put("empty", "");
        put(".being-written", "x");
        generation.make("files");
        put("files/" + kKept, "kept");
    }
    void TearDown() override { fs::remove_all(root_); }

    void put(const std::string& name, const std::string& content) {
        std::ofstream(root_ / "gen-000007" / name, std::ios::binary) << content;
    }
    Patience patience(int64_t ms = 5000) const {
        return {ms, [] { return false; }};
    }

    fs::path root_;
    files::Folder folder_;
    std::string data_;
    wire::Key key_ = wire::random_key();
};

TEST_F(TransferTest, FilesComeAsTheyAre) {
    Server server(folder_, kJob, key_, 5000);
    Client client(server.addresses(), NodePlace{"b"}, key_, patience());
    std::vector<File> files = client.list(Generation(7));
    ASSERT_EQ(files.size(), 3u);
    EXPECT_EQ(files[0], (File{"empty", 0}));
    EXPECT_EQ(files[1], (File{"rank-000001.img", data_.size()}));
    EXPECT_EQ(files[2], (File{"files/" + kKept, 4}));

    std::string whole;
    const uint64_t bytes =
        client.read(Generation(7), "rank-000001.img", 0, UINT64_MAX, [&](View piece, uint64_t offset) {
            EXPECT_EQ(offset, whole.size());
            whole.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        });
    EXPECT_EQ(bytes, data_.size());
    EXPECT_EQ(whole, data_);
    char part[1000];
    client.read(Generation(7), "rank-000001.img", kMostData - 17, part, sizeof part);
    EXPECT_EQ(std::string(part, sizeof part), data_.substr(kMostData - 17, sizeof part));
    EXPECT_EQ(client.read(Generation(7), "empty", 0, 10, [](View, uint64_t) { FAIL(); }), 0u);
    EXPECT_EQ(client.read(Generation(7), "rank-000001.img", 1ull << 60, 10, [](View, uint64_t) { FAIL(); }),
              data_.size());
    const Sum sum = client.digest(Generation(7), "rank-000001.img");
    EXPECT_EQ(sum.bytes, data_.size());
    EXPECT_EQ(sum.checksum, image::Hash::of(data_.data(), data_.size()));
    char kept[4];
    client.read(Generation(7), "files/" + kKept, 0, kept, sizeof kept);
    EXPECT_EQ(std::string(kept, 4), "kept");
}

TEST_F(TransferTest, WhatIsNotThereIsSaid) {
    Server server(folder_, kJob, key_, 5000);
    auto refused = [&](const std::string& word, auto ask) {
        Client client(server.addresses(), NodePlace{"b"}, key_, patience());
        try {
            ask(client);
            ADD_FAILURE() << word;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find("the memory of b"), std::string::npos) << error.what();
        }
    };
    char byte;
    EXPECT_TRUE(Client(server.addresses(), NodePlace{"b"}, key_, patience()).list(Generation(8)).empty());
    refused("nothing of gen-000008", [](Client& c) { c.digest(Generation(8), "rank-000001.img"); });
    refused("rank-000002.img", [](Client& c) { c.digest(Generation(7), "rank-000002.img"); });
    refused("it has 0 bytes", [&](Client& c) { c.read(Generation(7), "empty", 0, &byte, 1); });
    // The server does not read what leads out, whatever a client says.
    refused("closed", [&](Client& c) { c.read(Generation(7), "../secret", 0, &byte, 1); });
    refused("closed", [&](Client& c) { c.read(Generation(7), ".being-written", 0, &byte, 1); });
    fs::create_symlink("/etc/passwd", root_ / "gen-000007" / "link");
    refused("link", [&](Client& c) { c.read(Generation(7), "link", 0, &byte, 1); });
    // A generation of another job.
    store::write_marker(*folder_.make("gen-000009"), {kJob + 1, 9});
    EXPECT_TRUE(Client(server.addresses(), NodePlace{"b"}, key_, patience()).list(Generation(9)).empty());
    refused("nothing of gen-000009", [](Client& c) { c.digest(Generation(9), "rank-000001.img"); });
}

TEST_F(TransferTest, WhoLacksTheKeyGetsNothing) {
    Server server(folder_, kJob, key_, 5000);
    EXPECT_THROW(Client(server.addresses(), NodePlace{"b"}, wire::random_key(), patience(1000)), Error);
}

// The other end changes a byte on the way: a relay between the two that has not got the key.
TEST_F(TransferTest, AChangedByteEndsIt) {
    Server server(folder_, kJob, key_, 5000);
    uint16_t port = 0;
    Fd listener = tree::listen_tcp(port);
    const size_t changed = 200'000;
    std::thread relay([&] {
        pollfd one{listener.get(), POLLIN, 0};
        ::poll(&one, 1, 5000);
        Fd in(::accept(listener.get(), nullptr, nullptr));
        Fd out(::socket(AF_INET, SOCK_STREAM, 0));
        const auto all = tree::parse_addresses(server.addresses(), tree::this_place());
        if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&all[0].where), all[0].size) != 0) return;
        size_t back = 0;
        for (std::vector<char> buffer(1 << 16);;) {
            pollfd both[] = {{in.get(), POLLIN, 0}, {out.get(), POLLIN, 0}};
            if (::poll(both, 2, 5000) <= 0) return;
            for (int i : {0, 1}) {
                if (!both[i].revents) continue;
                const ssize_t n = ::recv(both[i].fd, buffer.data(), buffer.size(), 0);
                if (n <= 0) return;
                if (i == 1) {
                    if (changed >= back && changed < back + static_cast<size_t>(n))
                        buffer[changed - back] ^= 1;
                    back += static_cast<size_t>(n);
                }
                if (::send(both[1 - i].fd, buffer.data(), static_cast<size_t>(n), MSG_NOSIGNAL) != n) return;
            }
        }
    });
    std::string got;
    try {
        Client client(fmt::format("127.0.0.1:{}@{}", port, tree::this_place()), NodePlace{"b"}, key_,
                      patience());
        client.read(Generation(7), "rank-000001.img", 0, UINT64_MAX, [&](View piece, uint64_t) {
            got.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        });
        ADD_FAILURE() << "nothing was noticed";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("wrong tag"), std::string::npos) << error.what();
    }
    EXPECT_EQ(got, data_.substr(0, got.size()));  // nothing that was not compared
    relay.join();
}

TEST_F(TransferTest, NobodyWaitsForASilentNode) {
    uint16_t port = 0;
    Fd listener = tree::listen_tcp(port);  // accepts, and says nothing
    const std::string addresses = fmt::format("127.0.0.1:{}@{}", port, tree::this_place());
    int64_t begin = monotonic_ms();
    EXPECT_THROW(Client(addresses, NodePlace{"b"}, key_, patience(400)), Error);
    EXPECT_LT(monotonic_ms() - begin, 4000);
    begin = monotonic_ms();
    EXPECT_THROW(Client(addresses, NodePlace{"b"}, key_, {60'000, [] { return true; }}), Error);
    EXPECT_LT(monotonic_ms() - begin, 4000);
}

// Whoever stands between two nodes lets a byte through now and then.
TEST_F(TransferTest, NobodyWaitsForAFrameThatDrips) {
    uint16_t port = 0;
    Fd listener = tree::listen_tcp(port);
    std::thread drips([&] {
        pollfd one{listener.get(), POLLIN, 0};
        ::poll(&one, 1, 5000);
        Fd socket(::accept(listener.get(), nullptr, nullptr));
        wire::Handshake shake(wire::Role::root, key_);
        for (char buffer[4096]; !shake.done();) {
            const ssize_t n = ::recv(socket.get(), buffer, sizeof buffer, 0);
            if (n <= 0) return;
            const std::string answer = shake.feed(buffer, static_cast<size_t>(n));
            if (::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
        }
        const wire::Bytes head = write_head({kMostData, Kind::names});
        for (int i = 0; i < 40; ++i) {
            const std::byte byte = i < 8 ? head[static_cast<size_t>(i)] : std::byte{};
            if (::send(socket.get(), &byte, 1, MSG_NOSIGNAL) != 1) return;
            ::usleep(50'000);
        }
    });
    const std::string addresses = fmt::format("127.0.0.1:{}@{}", port, tree::this_place());
    const int64_t begin = monotonic_ms();
    EXPECT_THROW(Client(addresses, NodePlace{"b"}, key_, patience(500)).list(Generation(7)), Error);
    EXPECT_LT(monotonic_ms() - begin, 1500);
    drips.join();
}

// A client that stops reading does not keep the server, nor its end.
TEST_F(TransferTest, TheServerEndsWithAClientThatStands) {
    Client* standing = nullptr;
    {
        Server server(folder_, kJob, key_, 60'000);
        standing = new Client(server.addresses(), NodePlace{"b"}, key_, patience());
        standing->list(Generation(7));
    }
    EXPECT_THROW(standing->list(Generation(7)), Error);
    delete standing;
}

TEST_F(TransferTest, SeveralStreamsAtOnce) {
    Server server(folder_, kJob, key_, 5000);
    std::vector<std::thread> threads;
    std::vector<std::string> got(8, std::string(data_.size(), 0));
    for (std::string& one : got)
        threads.emplace_back([&] {
            Client client(server.addresses(), NodePlace{"b"}, key_, patience());
            client.read(Generation(7), "rank-000001.img", 0, one.data(), one.size());
        });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& one : got) EXPECT_EQ(one, data_);
}

}  // namespace
}  // namespace fermata::transfer
