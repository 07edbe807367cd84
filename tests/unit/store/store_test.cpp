#include "store/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/fd.h"

namespace fermata::store {
namespace {
namespace fs = std::filesystem;

class StoreTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-store-XXXXXX";
        directory_ = mkdtemp(name);
    }
    void TearDown() override { fs::remove_all(directory_); }

    static Store of_job(uint64_t job, const std::string& directory, image::KeyPointer key = nullptr) {
        Store store = Store::for_writing(directory, std::move(key));
        store.lock("test", job);
        return store;
    }
    // Files of the right size stand for images: the store never opens them.
    Manifest fill(const GenerationInfo& pending, unsigned ranks = 2) {
        Manifest manifest;
        manifest.job = *pending.job;
        manifest.job_name = "melt";
        manifest.generation = pending.number;
        manifest.created = "2026-11-21 16:00:00";
        manifest.mpi = "openmpi";
        manifest.command = {"/usr/bin/lmp", "-in", "in.\xff\"melt"};
        manifest.phases = {{"save", 0.25}};
        for (unsigned rank = 0; rank < ranks; ++rank) {
            std::ofstream(pending.directory + "/" + image::image_name(Rank(rank)))
                << std::string(100 + rank, 'x');
            manifest.images.push_back({Rank(rank), image::image_name(Rank(rank)), 100 + rank, {}});
        }
        return manifest;
    }
    uint32_t commit_one(Store& store) {
        GenerationInfo pending = store.begin();
        store.commit(pending, fill(pending));
        return pending.number;
    }
    static std::string refusal(const Store& store, std::optional<uint32_t> wanted = {},
                               bool fallback = false) {
        try {
            store.choose(wanted, fallback);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }
    std::string directory_;
};

TEST_F(StoreTest, ACommittedGenerationIsFoundAndAnUncommittedOneIsNot) {
    Store store = of_job(0x1234, directory_ + "/a/b");
    EXPECT_NE(refusal(store).find("no complete generation"), std::string::npos);
    EXPECT_EQ(commit_one(store), 1u);
    GenerationInfo pending = store.begin();
    fill(pending);
    EXPECT_EQ(pending.number, 2u);
    EXPECT_EQ(store.choose({}, false).number, 1u);
    EXPECT_EQ(store.choose({}, false).manifest->bytes(), 201u);
    EXPECT_NE(refusal(store, 2).find("never committed"), std::string::npos);
    EXPECT_NE(refusal(store, 7).find("no generation"), std::string::npos);
    store.abandon(pending);
    EXPECT_FALSE(fs::exists(pending.directory));
    store.abandon(store.choose({}, false));
    EXPECT_EQ(store.choose({}, false).number, 1u) << "a committed one is never abandoned";
}

TEST_F(StoreTest, AMissingOrShortImageIsReportedAndTheOneBeforeTakenWhenAsked) {
    Store store = of_job(0x1234, directory_);
    commit_one(store);
    commit_one(store);
    fs::resize_file(store.choose({}, false).directory + "/" + image::image_name(Rank(1)), 50);
    EXPECT_NE(refusal(store).find("50 bytes instead of 101"), std::string::npos) << refusal(store);
    EXPECT_EQ(store.choose({}, true).number, 1u);
    fs::remove(directory_ + "/gen-000001/" + image::image_name(Rank(0)));
    EXPECT_NE(refusal(store, 1).find("missing"), std::string::npos);
    EXPECT_NE(refusal(store, {}, true).find("no complete generation"), std::string::npos);
}

TEST_F(StoreTest, CommitRefusesAMissingImage) {
    Store store = of_job(0x1234, directory_);
    GenerationInfo pending = store.begin();
    Manifest manifest = fill(pending);
    fs::remove(pending.directory + "/" + image::image_name(Rank(1)));
    EXPECT_THROW(store.commit(pending, manifest), Error);
    EXPECT_FALSE(store.list().at(0).manifest);
}

TEST_F(StoreTest, EveryFlippedOrMissingByteOfAManifestIsNoticed) {
    Store store = of_job(0x1234, directory_);
    commit_one(store);
    std::string text = to_text(*store.choose({}, false).manifest);
    for (size_t at = 0; at < text.size(); ++at) {
        std::string bad = text;
        bad[at] = static_cast<char>(bad[at] ^ 1);
        EXPECT_THROW(parse_manifest(bad, "m"), Error) << at;
        EXPECT_THROW(parse_manifest(text.substr(0, at), "m"), Error) << at;
    }
    EXPECT_EQ(parse_manifest(text, "m").images.size(), 2u);
}

// With a right checksum: a manifest that some other program wrote.
TEST_F(StoreTest, NothingInAManifestIsConvertedSilently) {
    Store store = of_job(0x1234, directory_);
    commit_one(store);
    std::string text = to_text(*store.choose({}, false).manifest);
    std::pair<const char*, const char*> changes[] = {{"\"generation\": 1", "\"generation\": -1"},
                                                     {"\"generation\": 1", "\"generation\": 1.5"},
                                                     {"\"generation\": 1", "\"generation\": 4294967297"},
                                                     {"\"rank\": 1", "\"rank\": true"},
                                                     {"\"rank\": 1", "\"rank\": 2"},
                                                     {"\"rank\": 1", "\"rank\": 4294967295"},
                                                     {"\"bytes\": 100", "\"bytes\": -100"},
                                                     {"0000000000001234", "0x00000000001234"},
                                                     {"0000000000001234", "1234"},
                                                     {"rank-000001.img", ".."},
                                                     {"rank-000001.img", "a/b"},
                                                     {"\"needs\": []", "\"needs\": [0.5]"},
                                                     {"\"fermata_manifest\": 5", "\"fermata_manifest\": 2.5"},
                                                     {"\"fermata_manifest\": 5", "\"fermata_manifest\": 6"},
                                                     {"\"fermata_manifest\": 5", "\"fermata_manifest\": 7"},
                                                     {"\"offset\": 0", "\"offset\": 4096"},
                                                     {"\"shared_bytes\": 0", "\"shared_bytes\": 100000"}};
    for (auto [from, to] : changes) {
        std::string body = text.substr(0, text.rfind("xxh3-128 "));
        size_t at = body.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        body.replace(at, std::strlen(from), to);
        body += "xxh3-128 " + image::checksum_of(body.data(), body.size()).hex() + "\n";
        EXPECT_THROW(parse_manifest(body, "m"), Error) << to;
    }
}

TEST_F(StoreTest, ProgramsOfAManifestAreAllRanksInOrder) {
    Manifest m;
    m.job_name = "coupled";
    m.generation = 1;
    m.command = {"./atm", "namelist"};
    for (uint32_t rank = 0; rank < 4; ++rank)
        m.images.push_back({Rank(rank), image::image_name(Rank(rank)), 1, {}});
    EXPECT_EQ(parse_manifest(to_text(m), "m").whole_command(), m.command);
    auto ranks = [](uint32_t first, uint32_t count) { return RankRange(Rank(first), count); };
    m.segments = {{ranks(0, 1), m.command}, {ranks(1, 3), {"./ocn"}}};
    Manifest again = parse_manifest(to_text(m), "m");
    EXPECT_EQ(again.segments, m.segments);
    std::vector<std::string> whole = {"-n", "1", "./atm", "namelist", ":", "-n", "3", "./ocn"};
    EXPECT_EQ(again.whole_command(), whole);
    m.command = m.segments[0].command = {"./caf\xe9"};  // Latin-1
    EXPECT_EQ(parse_manifest(to_text(m), "m").segments, m.segments);
    m.command = m.segments[0].command = {"./atm", "namelist"};
    const std::vector<std::vector<Segment>> wrong = {
        {{ranks(0, 4), m.command}},                          // one is no several
        {{ranks(0, 1), m.command}, {ranks(1, 2), {"b"}}},    // too few
        {{ranks(0, 1), m.command}, {ranks(1, 4), {"b"}}},    // too many
        {{ranks(0, 1), m.command}, {ranks(2, 3), {"b"}}},    // a gap
        {{ranks(1, 3), {"b"}}, {ranks(0, 1), m.command}},    // out of order
        {{ranks(0, 1), m.command}, {ranks(1, 3), {}}},       // nothing
        {{ranks(0, 1), {"./other"}}, {ranks(1, 3), {"b"}}},  // another command
    };
    for (const std::vector<Segment>& segments : wrong) {
        m.segments = segments;
        EXPECT_THROW(parse_manifest(to_text(m), "m"), Error);
    }
}

TEST_F(StoreTest, ALevelOfCpusIsOneThatThisBuildKnows) {
    Manifest m;
    m.job_name = "kept";
    m.generation = 1;
    m.command = {"./a"};
    m.images.push_back({Rank(0), image::image_name(Rank(0)), 1, {}});
    EXPECT_EQ(to_text(m).find("cpu"), std::string::npos);
    m.cpu = "x86-64-v3";
    std::string text = to_text(m);
    EXPECT_EQ(parse_manifest(text, "m").cpu, "x86-64-v3");
    text.replace(text.find("-v3"), 3, "-v9");
    EXPECT_THROW(parse_manifest(text, "m"), Error);
}

// A build that knows no message logs must not take the generation for one without.
TEST_F(StoreTest, MessageLogsHaveAManifestOfTheirOwnVersion) {
    Manifest m;
    m.job_name = "logged";
    m.generation = 1;
    m.command = {"./a"};
    for (uint32_t rank = 0; rank < 2; ++rank)
        m.images.push_back({Rank(rank), image::image_name(Rank(rank)), 1, {}});
    EXPECT_EQ(to_text(m).find("message_log"), std::string::npos);
    m.message_log = {1027, "50%", 1 << 20};
    const std::string text = to_text(m);
    EXPECT_NE(text.find("\"fermata_manifest\": 10,"), std::string::npos) << text;
    EXPECT_EQ(parse_manifest(text, "m").message_log, m.message_log);
    // An older one says nothing of the memory; what nobody can ask for is refused.
    const auto with = [&](const std::string& other) {
        const size_t memory = text.find("\"memory\""), begin = text.rfind(',', memory);
        std::string body = text.substr(0, text.rfind("xxh3-128 "));
        body.replace(begin, text.find_first_of("\n}", memory) - begin, other);
        return body + "xxh3-128 " + image::checksum_of(body.data(), body.size()).hex() + "\n";
    };
    EXPECT_EQ(parse_manifest(with(""), "m").message_log->memory, MessageLog::kDefaultMemory);
    for (const char* wrong : {",\"memory\":1", ",\"memory\":-1", ",\"memory\":9000000000000000000"})
        EXPECT_THROW(parse_manifest(with(wrong), "m"), Error) << wrong;
    // With what else a manifest may have.
    m.level = LevelName::local;
    m.nodes = {"a", "b"};
    Manifest again = parse_manifest(to_text(m), "m");
    EXPECT_TRUE(again.message_log == m.message_log && again.nodes == m.nodes && again.level == m.level);
    m.level = LevelName::files;
    m.nodes.clear();
    m.layout = *image::Layout::of("group:2");
    m.files = {{"ranks-000000.img", 2}};
    m.images[0].file = m.images[1].file = m.files[0].name;
    m.images[1].offset = 1;
    again = parse_manifest(to_text(m), "m");
    EXPECT_TRUE(again.message_log == m.message_log && again.layout == m.layout && again.files == m.files);
}

// Deep enough to end the stack of whoever calls himself for each level.
TEST_F(StoreTest, ANestedManifestIsRefused) {
    Store store = Store::for_writing(directory_);
    commit_one(store);
    std::string text = to_text(*store.choose({}, false).manifest);
    const std::string deep = std::string(1 << 18, '[') + std::string(1 << 18, ']');
    for (const char* value : {"\"files\"", "\"openmpi\"", "\"rank-000001.img\"", "1", "[]"})
        for (const std::string& nested : {deep, deep.substr(0, 1 << 18)}) {
            std::string body = text.substr(0, text.rfind("xxh3-128 "));
            size_t at = body.find(std::string(": ") + value);
            ASSERT_NE(at, std::string::npos) << value;
            body.replace(at + 2, std::strlen(value), nested);
            body += "xxh3-128 " + image::checksum_of(body.data(), body.size()).hex() + "\n";
            EXPECT_THROW(parse_manifest(body, "m"), Error) << value;
        }
}

// A text that takes many times its length of memory, or names that do: `list` reads what others put there.
TEST_F(StoreTest, AManifestThatGrowsIsRefused) {
    Store store = Store::for_writing(directory_);
    commit_one(store);
    const std::string text = to_text(*store.choose({}, false).manifest);
    const auto why = [&](const std::string& name, const std::string& value) {
        std::string body = text.substr(0, text.rfind("xxh3-128 "));
        body.insert(1, fmt::format("\"{}\": {},", name, value));
        body += "xxh3-128 " + image::checksum_of(body.data(), body.size()).hex() + "\n";
        try {
            parse_manifest(body, "m");
            return std::string();
        } catch (const Error& error) {
            return std::string(error.what());
        }
    };
    std::string lists = "[[]";
    for (int i = 0; i < 2 << 20; ++i) lists += ",[]";
    EXPECT_NE(why("x", lists + "]").find("values"), std::string::npos);
    EXPECT_EQ(why("x", "[" + std::string(3 << 20, ' ') + "]"), "");
    EXPECT_EQ(why("x", "\"\\\\\\\"" + std::string(3 << 20, ',') + "\""), "");  // a word of them is one
    // The name of a node is there for each rank.
    Manifest manifest = *store.choose({}, false).manifest;
    manifest.level = LevelName::memory;
    manifest.nodes = {std::string(1 << 20, 'n'), std::string(1 << 20, 'n')};
    EXPECT_THROW(parse_manifest(to_text(manifest), "m"), Error);
    manifest.nodes = {std::string(255, 'n'), std::string(255, 'n')};
    EXPECT_NO_THROW(parse_manifest(to_text(manifest), "m"));
}

// As many as another user likes to put there.
TEST_F(StoreTest, OthersGenerationsTakeNoDescriptors) {
    if (::geteuid() != 0) GTEST_SKIP() << "nobody else's directory can be made";
    Store store = Store::for_writing(directory_);
    commit_one(store);
    for (int i = 100; i < 400; ++i) {
        const std::string one = fmt::format("{}/gen-{:06}", directory_, i);
        fs::create_directory(one);
        std::ofstream(one + "/manifest.json") << "{}";
        ASSERT_EQ(::chown(one.c_str(), 61000000, 61000000), 0);
    }
    const auto open_ones = [] {
        return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
    };
    const auto before = open_ones();
    const auto all = store.list();
    EXPECT_EQ(all.size(), 301u);
    EXPECT_LT(open_ones() - before, 10);
    EXPECT_EQ(all.back().folder.owner(), 61000000u);
}

TEST_F(StoreTest, RetentionKeepsTheNewest) {
    Store store = of_job(0x1234, directory_);
    for (int i = 0; i < 4; ++i) commit_one(store);
    GenerationInfo pending = store.begin();
    store.retain(2);
    std::vector<GenerationInfo> left = store.list();
    ASSERT_EQ(left.size(), 3u);
    EXPECT_EQ(left[0].number, 3u);
    EXPECT_EQ(left[2].number, pending.number) << "one in the making is left alone";
    EXPECT_EQ(store.begin().number, 6u) << "numbers are not used twice";
}

TEST_F(StoreTest, WhatAKilledJobLeftIsRemovedByTheNextGeneration) {
    Store store = of_job(0x1234, directory_);
    commit_one(store);
    GenerationInfo killed = store.begin();
    fill(killed);
    std::ofstream(killed.directory + "/manifest.json.new") << "half";
    GenerationInfo next = store.begin();
    EXPECT_EQ(next.number, 3u);
    EXPECT_FALSE(fs::exists(killed.directory));
    EXPECT_EQ(store.choose({}, false).number, 1u);
}

TEST_F(StoreTest, RetentionKeepsWhatAKeptGenerationNeeds) {
    Store store = of_job(0x1234, directory_);
    for (uint32_t needs : {0u, 1u, 2u, 0u, 4u}) {
        GenerationInfo pending = store.begin();
        Manifest manifest = fill(pending);
        if (needs) manifest.needs = {needs};
        store.commit(pending, manifest);
    }
    auto left = [&] {
        std::vector<uint32_t> numbers;
        for (const GenerationInfo& info : store.list()) numbers.push_back(info.number);
        return numbers;
    };
    store.retain(4);  // 2 to 5 and what 2 refers to
    EXPECT_EQ(left(), (std::vector<uint32_t>{1, 2, 3, 4, 5}));
    store.retain(3);  // 3 to 5, what 3 refers to, and what that refers to: each can be restarted
    EXPECT_EQ(left(), (std::vector<uint32_t>{1, 2, 3, 4, 5}));
    store.retain(2);
    EXPECT_EQ(left(), (std::vector<uint32_t>{4, 5}));
    store.retain(1);
    EXPECT_EQ(left(), (std::vector<uint32_t>{4, 5}));
    fs::remove(directory_ + "/gen-000004/" + image::image_name(Rank(1)));
    EXPECT_NE(refusal(store).find("which it needs"), std::string::npos) << refusal(store);
}

// Real images: a full one and two increments of it.
TEST_F(StoreTest, ACompactedGenerationStandsAloneWithTheSameContent) {
    Store store = of_job(0x1234, directory_);
    constexpr uint64_t kBase = 0x10000000, kPages = 600;
    std::vector<char> memory(kPages * kPage, 0);
    image::Content newest;
    image::WriteOptions how;
    how.sync = false;
    for (uint32_t number = 1; number <= 3; ++number) {
        GenerationInfo pending = store.begin();
        Manifest manifest = fill(pending, 1);
        fs::remove(pending.directory + "/" + manifest.images[0].file);
        image::Writer writer(pending.directory + "/" + manifest.images[0].file, {0x1234, number, Rank(0), 1},
                             how);
        writer.blob("process", "abc", 3);
        uint64_t written = number == 1 ? kPages : 3 * number, end = written * kPage;
        for (uint64_t i = 0; i < end; i += 5) memory[i] = static_cast<char>(i / 977 + number);
        // A page that becomes zero again is a change, too.
        if (number > 1) std::fill_n(memory.begin(), kPage, 0);
        writer.run(kBase, memory.data(), end);
        writer.keep(newest, {{kBase + end, kBase + memory.size()}});
        image::Summary summary = writer.finish();
        newest = writer.content();
        manifest.images[0].bytes = summary.bytes;
        manifest.images[0].checksum = summary.checksum;
        for (uint32_t earlier = 1; earlier < number; ++earlier) manifest.needs.push_back(earlier);
        Fd copy = pending.folder.make("files")->create(std::string(32, '0'));
        write_all(copy.get(), "copy", 4, "the copy of a file");
        store.commit(pending, manifest);
    }
    EXPECT_THROW(store.compact(2, how), Error) << "the third refers to it";
    EXPECT_FALSE(store.compact(1, how)) << "it stands alone already";
    std::string left = directory_ + "/.compact-gen-000003";
    fs::create_directory(left);
    EXPECT_THROW(store.compact(3, how), Error) << "not ours: in the way, and not removed";
    std::ofstream(left + "/.fermata") << "fermata generation 1\njob 0000000000001234\ngeneration 3\n";
    EXPECT_TRUE(store.compact(3, how)) << "what a crash left";
    EXPECT_FALSE(fs::exists(directory_ + "/.compact-gen-000003"));
    store.retain(1);
    ASSERT_EQ(store.list().size(), 1u);
    GenerationInfo info = store.choose({}, false);
    EXPECT_EQ(info.number, 3u);
    EXPECT_TRUE(info.manifest->needs.empty());
    EXPECT_EQ(info.folder.below("files").text(std::string(32, '0')), "copy");
    image::Reader reader(info.directory + "/" + info.manifest->images[0].file);
    EXPECT_EQ(reader.summary().checksum, info.manifest->images[0].checksum);
    EXPECT_EQ(reader.identity().generation, 3u);
    EXPECT_EQ(reader.blob("process").size(), 3u);
    std::vector<char> back(memory.size(), 0);
    reader.load([&](const image::Extent& e) { return back.data() + (e.address - kBase); });
    EXPECT_EQ(back, memory);
}

TEST_F(StoreTest, ManifestsAreSealedWithTheKey) {
    auto key_of = [&](char digit) {
        std::string path = directory_ + "/" + digit;
        std::ofstream(path) << std::string(64, digit);
        fs::permissions(path, fs::perms::owner_read);
        return image::Key::from_file(path);
    };
    image::KeyPointer key = key_of('1'), other = key_of('2');
    Store store = of_job(0x1234, directory_, key);
    for (int i = 0; i < 2; ++i) {
        GenerationInfo pending = store.begin();
        Manifest manifest = fill(pending);
        EXPECT_THROW(store.commit(pending, manifest), image::KeyError) << "it must say which key";
        manifest.key_id = key->id();
        store.commit(pending, manifest);
    }
    EXPECT_EQ(store.choose({}, false).number, 2u);
    auto with = [&](const image::KeyPointer& one) {
        try {
            return std::to_string(Store::for_reading(directory_, one).choose({}, true).number);
        } catch (const image::KeyError& error) {
            return std::string("key: ") + error.what();
        } catch (const Error& error) {
            return std::string(error.what());
        }
    };
    EXPECT_EQ(with(key), "2");
    EXPECT_NE(with(nullptr).find("key: " + directory_ + "/gen-000002 is encrypted: name its key"),
              std::string::npos);
    EXPECT_NE(with(other).find("is encrypted with another key"), std::string::npos) << with(other);
    EXPECT_EQ(Store::for_reading(directory_).list().size(), 2u) << "to be listed it needs no key";

    // Whoever has no key can make all checksums right, and no seal.
    std::string path = directory_ + "/gen-000002/manifest.json", good = read_file(path);
    auto changed = [&](auto change) {
        Manifest manifest = parse_manifest(good, path, key.get());
        change(manifest);
        std::string body = to_text(manifest, key.get());
        std::string mine = body.substr(0, body.rfind("blake2b"));
        return mine + good.substr(good.rfind("blake2b"));
    };
    auto judge = [&](const std::string& text) {
        std::ofstream(path) << text;
        try {
            return std::to_string(Store::for_reading(directory_, key).choose(2, false).number);
        } catch (const Error& error) {
            return std::string(error.what());
        }
    };
    EXPECT_EQ(judge(good), "2");
    EXPECT_EQ(judge(changed([](Manifest&) {})), "2");
    EXPECT_NE(
        judge(changed([](Manifest& m) { m.images[1].checksum.bytes[0] = 1; })).find("its seal is wrong"),
        std::string::npos);
    EXPECT_NE(judge(changed([](Manifest& m) { m.needs = {1}; })).find("its seal is wrong"),
              std::string::npos);
    EXPECT_NE(judge(good.substr(0, good.rfind("blake2b"))).find("lacks its seal"), std::string::npos);
    Manifest plain = parse_manifest(good, path, key.get());
    plain.key_id.reset();
    EXPECT_NE(judge(to_text(plain)).find("is not encrypted: leave out the key"), std::string::npos);
    std::string first = read_file(directory_ + "/gen-000001/manifest.json");
    EXPECT_NE(judge(first).find("is of generation 1"), std::string::npos) << judge(first);
}

TEST_F(StoreTest, TwoJobsCannotUseOneDirectory) {
    Store first = Store::for_writing(directory_);
    first.lock("first-job", 1);
    Store second = Store::for_writing(directory_);
    try {
        second.lock("second-job", 2);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("in use by job first-job"), std::string::npos)
            << error.what();
    }
    { Store gone = std::move(first); }
    second.lock("second-job", 2);
}

// A stopped job's only generation, in a directory where another one keeps its newest two.
TEST_F(StoreTest, RetentionAndSweepAreEachJobsOwn) {
    {
        Store first = of_job(1, directory_);
        commit_one(first);
        fill(first.begin());  // killed in the middle of it
    }
    Store second = of_job(2, directory_);
    for (int i = 0; i < 4; ++i) commit_one(second);
    second.retain(2);
    std::vector<uint32_t> numbers, jobs;
    for (const GenerationInfo& info : second.list()) {
        numbers.push_back(info.number);
        jobs.push_back(static_cast<uint32_t>(info.job.value()));
    }
    EXPECT_EQ(numbers, (std::vector<uint32_t>{1, 2, 5, 6}));
    EXPECT_EQ(jobs, (std::vector<uint32_t>{1, 1, 2, 2}));
    { Store gone = std::move(second); }
    Store again = of_job(1, directory_);
    EXPECT_EQ(commit_one(again), 7u);
    EXPECT_FALSE(fs::exists(directory_ + "/gen-000002")) << "its own, never committed";
}

TEST_F(StoreTest, WhatAnotherJobNeverCommittedGoesAfterACommit) {
    {
        Store first = of_job(1, directory_);
        commit_one(first);
        fill(first.begin());
        EXPECT_TRUE(Store::for_reading(directory_).in_use());
        // Without the lock nobody knows whether that job lives.
        Store::for_writing(directory_).remove_left_behind();
        EXPECT_TRUE(fs::exists(directory_ + "/gen-000002"));
    }
    EXPECT_FALSE(Store::for_reading(directory_).in_use());
    Store second = of_job(2, directory_);
    fs::create_directory(directory_ + "/gen-000003");  // nobody knows whose
    fs::create_directory(directory_ + "/gen-000004");
    std::ofstream(directory_ + "/gen-000004/.fermata")
        << "fermata generation 1\njob 0000000000000003\ngeneration 4\n";
    std::ofstream(directory_ + "/gen-000004/notes.txt") << "a person's";
    commit_one(second);
    GenerationInfo pending = second.begin();
    std::vector<GenerationInfo> all = second.list();
    EXPECT_TRUE(second.is_left_behind(all.at(1)));
    EXPECT_FALSE(second.is_left_behind(all.at(0)));
    second.remove_left_behind();
    EXPECT_TRUE(fs::exists(directory_ + "/gen-000001")) << "committed";
    EXPECT_FALSE(fs::exists(directory_ + "/gen-000002")) << "begun by a job that does not run";
    EXPECT_TRUE(fs::exists(directory_ + "/gen-000003"));
    EXPECT_TRUE(fs::exists(directory_ + "/gen-000004/notes.txt"));
    EXPECT_TRUE(fs::exists(pending.directory)) << "its own";
}

TEST_F(StoreTest, WhatFermataDidNotMakeIsNoGenerationAndNeverRemoved) {
    Store store = of_job(0x1234, directory_);
    fs::create_directories(directory_ + "/gen-000001/results");  // the program's own
    fs::create_directory(directory_ + "/gen-4294967294");
    fs::create_directory(directory_ + "/gen-9999999999");
    std::ofstream(directory_ + "/gen-000002") << "a file";
    fs::create_directory(directory_ + "/.compact-gen-000001");
    EXPECT_EQ(commit_one(store), 3u);
    fs::create_directory_symlink("gen-000003", directory_ + "/gen-000009");  // not a tenth name for it
    EXPECT_EQ(commit_one(store), 4u);
    std::ofstream(directory_ + "/gen-000003/notes.txt") << "a person's";
    GenerationInfo pending = store.begin();
    fs::create_directory(pending.directory + "/folder");
    store.abandon(pending);
    EXPECT_TRUE(fs::exists(pending.directory + "/folder"));
    EXPECT_EQ(commit_one(store), 6u);
    store.retain(1);
    std::vector<uint32_t> numbers;
    for (const GenerationInfo& info : store.list()) numbers.push_back(info.number);
    EXPECT_EQ(numbers, (std::vector<uint32_t>{3, 5, 6}));
    for (const char* name : {"gen-000001/results", "gen-4294967294", "gen-9999999999", "gen-000002",
                             "gen-000009", ".compact-gen-000001", "gen-000003/manifest.json"})
        EXPECT_TRUE(fs::exists(directory_ + "/" + name)) << name;
}

// And nothing that a person has put beside them, and nobody's directory under that name.
TEST_F(StoreTest, CopiesOfTheProgramsFilesGoWithTheirGeneration) {
    Store store = of_job(0x1234, directory_);
    const std::string copy(32, 'a');
    for (int i = 0; i < 5; ++i) {
        GenerationInfo pending = store.begin();
        Manifest manifest = fill(pending);
        Fd fd = pending.folder.make("files")->create(copy);
        write_all(fd.get(), "copy", 4, copy);
        store.commit(pending, manifest);
    }
    GenerationInfo first = store.choose(1, false);
    EXPECT_EQ(first.bytes(), first.manifest->bytes() + 4);
    std::string second = directory_ + "/gen-000002/files", third = directory_ + "/gen-000003/files",
                fourth = directory_ + "/gen-000004/files";
    std::ofstream(second + "/notes.txt") << "a person's";
    fs::rename(third, directory_ + "/elsewhere");
    fs::create_directory_symlink("../elsewhere", third);
    fs::create_directory(fourth + "/" + std::string(32, 'b'));
    store.retain(1);
    EXPECT_FALSE(fs::exists(first.directory));
    for (const std::string& path :
         {second + "/" + copy, second + "/notes.txt", directory_ + "/elsewhere/" + copy, fourth + "/" + copy,
          directory_ + "/gen-000002/manifest.json", directory_ + "/gen-000003/manifest.json"})
        EXPECT_TRUE(fs::exists(path)) << path;
    GenerationInfo pending = store.begin();
    pending.folder.make("files")->create(copy);
    store.abandon(pending);
    EXPECT_FALSE(fs::exists(pending.directory));
}

TEST_F(StoreTest, AGenerationIsTheOneThatWasChosen) {
    Store store = of_job(0x1234, directory_);
    commit_one(store);
    commit_one(store);
    GenerationInfo chosen = store.choose(1, false);
    std::string first = chosen.directory, second = store.choose(2, false).directory;
    EXPECT_EQ(open_chosen(first, chosen.seal.hex(), nullptr).number, 1u);
    EXPECT_THROW(open_chosen(second, chosen.seal.hex(), nullptr), Error);
    fs::rename(first, directory_ + "/aside");
    fs::rename(second, first);
    EXPECT_THROW(open_chosen(first, chosen.seal.hex(), nullptr), Error);
    fs::rename(first, second);
    fs::create_directory_symlink("aside", first);
    EXPECT_THROW(open_chosen(first, chosen.seal.hex(), nullptr), Error);

    GenerationInfo pending = store.begin();
    EXPECT_EQ(open_pending(pending.directory, 0x1234, pending.number).path(), pending.directory);
    EXPECT_THROW(open_pending(pending.directory, 0x1235, pending.number), Error);
    EXPECT_THROW(open_pending(pending.directory, 0x1234, pending.number + 1), Error);
    fs::rename(pending.directory, directory_ + "/moved");
    fs::create_directory(pending.directory);
    EXPECT_THROW(open_pending(pending.directory, 0x1234, pending.number), Error);
    EXPECT_THROW(store.commit(pending, fill(pending)), Error);
}

// Nothing that lies there makes a command wait or read for ever.
TEST_F(StoreTest, PipesLinksAndGiantsUnderOurNames) {
    Store store = of_job(0x1234, directory_);
    commit_one(store);
    commit_one(store);
    std::string manifest = directory_ + "/gen-000002/manifest.json";
    fs::remove(manifest);
    ASSERT_EQ(::mkfifo(manifest.c_str(), 0600), 0);
    EXPECT_NE(refusal(store).find("not a regular file"), std::string::npos) << refusal(store);
    fs::remove(manifest);
    fs::create_symlink("../gen-000001/manifest.json", manifest);
    EXPECT_NE(refusal(store).find("is a link"), std::string::npos) << refusal(store);
    fs::remove(manifest);
    std::ofstream(manifest) << "{";
    fs::resize_file(manifest, uint64_t{8} << 30);
    EXPECT_NE(refusal(store).find("longer than"), std::string::npos) << refusal(store);
    EXPECT_EQ(store.choose({}, true).number, 1u);
    fs::remove(directory_ + "/.lock");
    fs::create_symlink("victim", directory_ + "/.lock");
    std::ofstream(directory_ + "/victim") << "precious";
    Store other = Store::for_writing(directory_);
    EXPECT_THROW(other.lock("x", 2), Error);
    EXPECT_EQ(fs::file_size(directory_ + "/victim"), 8u);
}

TEST_F(StoreTest, AnEndIsNotedAndForgotten) {
    Store store = of_job(7, directory_);
    EXPECT_TRUE(store.ends().empty());
    store.note_end({7, "melt", {"./prog", "a b", "\"\n"}, "2026-11-26 02:00:00"});
    store.note_end({8, "earlier", {}, "2026-11-25 02:00:00"});
    std::ofstream(directory_ + "/.ended-0000000000000009") << "{\"job\":";
    std::ofstream(directory_ + "/.ended-000000000000000a") << "{\"job\": 12}";
    std::vector<JobEnd> ends = store.ends();
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_EQ(ends[0].name, "earlier");
    EXPECT_EQ(ends[1].command, (std::vector<std::string>{"./prog", "a b", "\"\n"}));
    store.forget_end(7);
    EXPECT_EQ(store.ends().size(), 1u);
}

TEST_F(StoreTest, SpaceAndPlaceAreChecked) {
    Store store = of_job(0x1234, directory_);
    store.check_space(1);
    EXPECT_THROW(store.check_space(uint64_t{1} << 60), Error);
    EXPECT_THROW(Store::for_writing("/proc/nowhere"), Error);
    std::ofstream(directory_ + "/file") << "x";
    EXPECT_THROW(Store::for_writing(directory_ + "/file"), Error);
    EXPECT_THROW(Store::for_reading(directory_ + "/none"), Error);
}

}  // namespace
}  // namespace fermata::store
