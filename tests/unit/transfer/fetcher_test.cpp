// Images come from another node's memory whole and with all that belongs to them, or not at all.
#include "transfer/fetcher.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "level/choice.h"
#include "level/memory.h"
#include "level/place.h"
#include "transfer/server.h"

namespace fermata::transfer {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kJob = 0x1122334455667788;
const std::string kKept = "0123456789abcdef0123456789abcdef";

class FetcherTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-fetcher-XXXXXX";
        root_ = ::mkdtemp(name);
        ::setenv("FERMATA_MEMORY_DIR", root_.c_str(), 1);
        fs::create_directory(root_ / "ckpt");
        a_.emplace(NodePlace{"a"}, kJob, root_ / "ckpt");
        b_.emplace(NodePlace{"b"}, kJob, root_ / "ckpt");
        // Generation 2 refers to 1; so much that several streams bring it.
        std::mt19937_64 random(20261126);
        data_.resize(24 << 20);
        for (size_t i = 0; i < data_.size(); i += 8) {
            const uint64_t word = random();
            std::memcpy(data_.data() + i, &word, 8);
        }
        files::Folder one = a_->make_room(Generation(1), 1), two = a_->make_room(Generation(2), 1);
        for (uint32_t rank : {0u, 1u, 2u}) {
            const Range all = Range::sized(uint64_t{1} << 40, data_.size());
            image::Writer base(image::Place(one, image::image_name(Rank(rank))), {kJob, 1, Rank(rank), 3});
            base.run(all.begin(), data_.data(), data_.size());
            base.finish();
            image::Writer next(image::Place(two, image::image_name(Rank(rank))), {kJob, 2, Rank(rank), 3});
            next.keep(base.content(), {Range(all.begin() + (20 << 20), all.end())});
            next.run(all.begin(), data_.data(), 20 << 20);
            const image::Summary summary = next.finish();
            images_[rank] = {summary.bytes, summary.checksum.hex()};
        }
        std::ofstream(two.make("files")->path_of(kKept)) << "kept";
        server_.emplace(a_->folder(), kJob, key_, 5000);
    }
    void TearDown() override {
        server_.reset();
        a_.reset();
        b_.reset();
        ::unsetenv("FERMATA_MEMORY_DIR");
        fs::remove_all(root_);
    }

    wire::Errand errand(std::vector<wire::Run> ranks) const {
        std::map<uint32_t, level::ImageIs> wanted;
        for (const wire::Run& run : ranks)
            for (uint32_t i = 0; i < run.count; ++i) {
                const uint32_t rank = static_cast<uint32_t>(run.first) + i;
                if (images_.count(rank)) wanted[rank] = images_.at(rank);
            }
        return {"b",
                "a",
                server_->addresses(),
                {Generation(1), Generation(2)},
                ranks,
                level::sum_of(wanted).bytes};
    }
    Fetcher::Order order(std::vector<wire::Errand> errands) const {
        return {1, kJob, b_->folder(), Medium::memory, key_, nullptr, true, 5000, std::move(errands)};
    }
    Fetcher::Result fetch(std::vector<wire::Errand> errands) {
        Fetcher fetcher;
        fetcher.start(order(std::move(errands)), 0);
        pollfd wait{fetcher.descriptor(), POLLIN, 0};
        EXPECT_EQ(::poll(&wait, 1, 30'000), 1);
        return fetcher.take().value();
    }
    std::vector<std::string> names_at_b(uint32_t generation) const {
        auto folder = b_->find(Generation(generation));
        return folder ? folder->names() : std::vector<std::string>();
    }
    void flip(const std::string& path, uint64_t at) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(at));
        const char old = static_cast<char>(file.get());
        file.seekp(static_cast<std::streamoff>(at));
        file.put(static_cast<char>(old ^ 4));
    }

    fs::path root_;
    std::optional<level::Memory> a_, b_;
    wire::Key key_ = wire::random_key();
    std::optional<Server> server_;
    std::vector<char> data_;
    std::map<uint32_t, level::ImageIs> images_;
};

TEST_F(FetcherTest, ImagesComeWithAllThatBelongsToThem) {
    const Fetcher::Result result = fetch({errand({{1, 2}})});
    ASSERT_TRUE(result.failures.empty()) << result.failures[0].error;
    EXPECT_GT(result.bytes, 2 * data_.size());
    EXPECT_EQ(names_at_b(2),
              (std::vector<std::string>{".fermata", "files", "rank-000001.img", "rank-000002.img"}));
    EXPECT_EQ(names_at_b(1), (std::vector<std::string>{".fermata", "rank-000001.img", "rank-000002.img"}));
    EXPECT_EQ(b_->find(Generation(2))->below("files").text(kKept), "kept");
    const level::Memory::Found found = b_->look_for({Generation(2)}, nullptr);
    EXPECT_EQ(found.intact.size(), 2u);
    EXPECT_TRUE(found.damaged.empty());
    // What is there does not come again.
    EXPECT_EQ(fetch({errand({{1, 2}})}).bytes, 0u);
    EXPECT_GT(fetch({errand({{0, 3}})}).bytes, 0u);
    EXPECT_EQ(b_->look_for({Generation(2)}, nullptr).intact.size(), 3u);
    b_->keep({});
    EXPECT_TRUE(names_at_b(1).empty() && names_at_b(2).empty());
}

TEST_F(FetcherTest, AFlippedByteHereIsMendedFromThere) {
    ASSERT_TRUE(fetch({errand({{0, 3}})}).failures.empty());
    for (uint32_t generation : {1u, 2u})
        flip(b_->find(Generation(generation))->path_of("rank-000001.img"),
             22u << 20 >> (generation == 2 ? 3 : 0));
    EXPECT_EQ(b_->look_for({Generation(2)}, nullptr).intact.size(), 2u);
    const Fetcher::Result result = fetch({errand({{1, 1}})});
    ASSERT_TRUE(result.failures.empty()) << result.failures[0].error;
    EXPECT_EQ(b_->look_for({Generation(2)}, nullptr).intact.size(), 3u);
}

TEST_F(FetcherTest, AFlippedByteThereIsFound) {
    flip(a_->find(Generation(1))->path_of("rank-000001.img"), 22u << 20);
    const Fetcher::Result result = fetch({errand({{0, 3}})});
    ASSERT_EQ(result.failures.size(), 1u);
    EXPECT_NE(result.failures[0].error.find("rank-000001.img"), std::string::npos)
        << result.failures[0].error;
    // Not looked at where only headers are compared, and then found by who looks.
    Fetcher::Order quick = order({errand({{0, 3}})});
    quick.thorough = false;
    Fetcher fetcher;
    fetcher.start(std::move(quick), 0);
    pollfd wait{fetcher.descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 30'000), 1);
    EXPECT_TRUE(fetcher.take()->failures.empty());
    EXPECT_EQ(b_->look_for({Generation(2)}, nullptr).intact.size(), 2u);
}

TEST_F(FetcherTest, OtherImagesThanTheManifestNamesAreRefused) {
    images_[1].checksum[0] ^= 1;
    const Fetcher::Result result = fetch({errand({{0, 3}})});
    ASSERT_EQ(result.failures.size(), 1u);
    EXPECT_NE(result.failures[0].error.find("not those that the manifest names"), std::string::npos)
        << result.failures[0].error;
}

TEST_F(FetcherTest, OneErrandThatFailsDoesNotKeepTheOthers) {
    wire::Errand nobody = errand({{0, 1}});
    nobody.from = "c";
    nobody.addresses = "127.0.0.1:1@" + std::string("elsewhere");
    const Fetcher::Result result = fetch({nobody, errand({{3, 1}}), errand({{1, 1}})});
    ASSERT_EQ(result.failures.size(), 2u);
    EXPECT_EQ(result.failures[0].from, "c");
    EXPECT_NE(result.failures[0].error.find("cannot reach"), std::string::npos) << result.failures[0].error;
    EXPECT_NE(result.failures[1].error.find("0 of 1 images of gen-000002"), std::string::npos)
        << result.failures[1].error;
    EXPECT_EQ(b_->look_for({Generation(2)}, nullptr).intact.size(), 1u);
}

TEST_F(FetcherTest, TheOtherNodeGoesInTheMiddle) {
    Fetcher fetcher;
    fetcher.start(order({errand({{0, 3}})}), 8 << 20);
    ::usleep(300'000);
    EXPECT_FALSE(fetcher.take());
    server_.reset();
    pollfd wait{fetcher.descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 30'000), 1);
    const Fetcher::Result result = fetcher.take().value();
    ASSERT_EQ(result.failures.size(), 1u);
    // Nothing that is half there.
    for (uint32_t generation : {1u, 2u})
        for (const std::string& name : names_at_b(generation))
            EXPECT_FALSE(name.starts_with(".coming")) << name;
    EXPECT_TRUE(b_->look_for({Generation(2)}, nullptr).intact.empty());
}

TEST_F(FetcherTest, ALimitIsKeptAndCanBeLifted) {
    Fetcher fetcher;
    fetcher.start(order({errand({{0, 1}})}), 1 << 20);
    ::usleep(500'000);
    EXPECT_FALSE(fetcher.take());
    fetcher.limit(0);
    pollfd wait{fetcher.descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 30'000), 1);
    EXPECT_TRUE(fetcher.take()->failures.empty());
    // Given up, with what it had.
    fetcher.start(order({errand({{1, 1}})}), 1 << 20);
    ::usleep(200'000);
    fetcher.stop();
    EXPECT_FALSE(fetcher.busy());
}

}  // namespace
}  // namespace fermata::transfer
