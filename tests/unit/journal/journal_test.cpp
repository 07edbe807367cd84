// The journal: its lines and back, the example of its page, what a full disk, a cut or garbage leaves of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"
#include "journal/reader.h"
#include "journal/writer.h"

namespace fermata::journal {
namespace {
namespace fs = std::filesystem;

class JournalTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-journal-XXXXXX";
        directory_ = mkdtemp(name);
    }
    void TearDown() override { fs::remove_all(directory_); }
    std::string text(const char* name = kName) const {
        std::ifstream file(directory_ + "/" + name);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void put(const std::string& text, const char* name = kName) const {
        std::ofstream(directory_ + "/" + name, std::ios::app) << text;
    }
    Contents contents() const { return read(files::Folder::at(directory_)); }
    std::string directory_;
};

Event event(Kind kind, nlohmann::json fields = nlohmann::json::object()) {
    return {kind, 0x1122334455667788, 1764147600123, std::move(fields)};
}

TEST(JournalLine, ComesBackAsItWas) {
    for (Kind kind : {Kind::start, Kind::running, Kind::request, Kind::phase, Kind::checkpoint, Kind::copy,
                      Kind::masked, Kind::replica, Kind::injected, Kind::loss, Kind::end, Kind::restart,
                      Kind::given_up, Kind::log, Kind::ranks}) {
        Event one =
            event(kind, {{"name", "a \"b\"\n\x01 ü"}, {"bytes", 1ull << 50}, {"ok", true}, {"list", {1, 2}}});
        std::string line = to_line(one);
        ASSERT_EQ(line.find('\n'), line.size() - 1);
        line.pop_back();
        auto back = parse_line(line);
        ASSERT_TRUE(back) << line;
        EXPECT_EQ(*back, one);
    }
}

// As deep as a line can hold it: whoever copied or wrote it would need more stack than there is.
TEST(JournalLine, NestedDeepIsNoneOfOurs) {
    auto line = [](size_t depth, const char* open, const char* inner, const char* close) {
        std::string text =
            R"({"event":"loss","time":"2025-11-26T09:00:00.123Z","job":"1122334455667788","why":)";
        for (size_t i = 0; i < depth; ++i) text += open;
        text += inner;
        for (size_t i = 0; i < depth; ++i) text += close;
        return text + "}";
    };
    EXPECT_TRUE(parse_line(line(3, "[", "", "]")));
    EXPECT_TRUE(parse_line(line(3, R"({"a":)", "1", "}")));
    for (size_t depth : {9, 100, 10'000, 30'000}) {
        EXPECT_FALSE(parse_line(line(depth, "[", "", "]"))) << depth;
        EXPECT_FALSE(parse_line(line(std::min<size_t>(depth, 10'000), R"({"a":)", "1", "}"))) << depth;
        EXPECT_FALSE(parse_line(line(depth, "[", "", ""))) << depth;  // cut off
    }
    const std::string right = to_line(event(Kind::loss, {{"why", "x"}}));
    Contents contents = parse(right + line(30'000, "[", "", "]") + "\n" + right);
    EXPECT_EQ(contents.events.size(), 2u);
    EXPECT_EQ(contents.not_ours, 1u);
}

TEST(JournalLine, WhateverIsToldFits) {
    nlohmann::json words = nlohmann::json::array();
    for (int i = 0; i < 100'000; ++i) words.push_back("a word of a long command line");
    std::string line = to_line(event(Kind::start, {{"command", words}, {"why", std::string(1 << 20, 'x')}}));
    EXPECT_LE(line.size(), kMostLine);
    ASSERT_TRUE(parse_line(line.substr(0, line.size() - 1)));
    nlohmann::json many = nlohmann::json::object();
    for (int i = 0; i < 4000; ++i) many["field" + std::to_string(i)] = i;
    EXPECT_LE(to_line(event(Kind::start, many)).size(), kMostLine);
    // Latin-1 and a character cut in two.
    std::string latin = to_line(event(Kind::loss, {{"why", "caf\xe9"}}));
    EXPECT_TRUE(parse_line(latin.substr(0, latin.size() - 1)));
    std::string umlauts;
    for (int i = 0; i < 3000; ++i) umlauts += "ü";
    std::string cut = to_line(event(Kind::loss, {{"why", "x" + umlauts}}));
    auto back = parse_line(cut.substr(0, cut.size() - 1));
    ASSERT_TRUE(back);
    EXPECT_EQ(text_in(*back, "why").find("\xef\xbf\xbd"), std::string::npos);
    // What is ours is not overwritten by a field of that name.
    std::string same = to_line(event(Kind::loss, {{"job", "no"}}));
    EXPECT_EQ(parse_line(same.substr(0, same.size() - 1))->job, 0x1122334455667788u);
}

TEST(JournalLine, OthersAreNotOurs) {
    const std::string good =
        R"({"time":"2026-11-26T09:00:00.123Z","event":"end","job":"1122334455667788","code":0})";
    ASSERT_TRUE(parse_line(good));
    auto with = [&](const std::string& old, const std::string& now) {
        std::string text = good;
        return text.replace(text.find(old), old.size(), now);
    };
    for (const std::string& bad :
         {std::string(), std::string("[]"), std::string("null"), good.substr(0, 40), good + "x",
          with("\"end\"", "\"ends\""), with("\"end\"", "7"), with("1122334455667788", "112233445566778"),
          with("1122334455667788", "112233445566778g"), with("09:00:00.123Z", "09:00:00Z"),
          with("2026-11-26", "2026-11-31"), with("2026-11-26", "1926-11-26"), with("T09", " 09"),
          std::string(100'000, '['), R"({"a":)" + std::string(50'000, '[')})
        EXPECT_FALSE(parse_line(bad)) << bad.substr(0, 100);
}

TEST_F(JournalTest, IsThisUsersAlone) {
    Writer writer(directory_, 7);
    writer.note(Kind::start, {{"name", "solver"}});
    writer.note(Kind::end, {{"code", 0}});
    Contents read = contents();
    ASSERT_EQ(read.events.size(), 2u);
    EXPECT_EQ(read.events[0].kind, Kind::start);
    EXPECT_EQ(text_in(read.events[0], "name"), "solver");
    EXPECT_EQ(read.events[1].job, 7u);
    EXPECT_GT(read.events[0].time_ms, 1'700'000'000'000);
    struct stat status {};
    ASSERT_EQ(::stat((directory_ + "/" + kName).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(JournalTest, ALinkIsNotFollowed) {
    put("mine\n", "target");
    fs::create_symlink(directory_ + "/target", directory_ + "/" + kName);
    Writer(directory_, 7).note(Kind::start);
    EXPECT_EQ(text("target"), "mine\n");
    EXPECT_THROW(contents(), Error);
    fs::remove(directory_ + "/" + kName);
    fs::create_hard_link(directory_ + "/target", directory_ + "/" + kName);
    Writer(directory_, 7).note(Kind::start);
    EXPECT_EQ(text("target"), "mine\n");
}

TEST_F(JournalTest, HalfALineCostsThatLineOnly) {
    {
        Writer writer(directory_, 7);
        writer.note(Kind::start);
    }
    std::string whole = text();
    put(whole.substr(0, whole.size() / 2));
    Writer(directory_, 7).note(Kind::end);
    put(std::string("\0\xff garbage\n\n", 13) + std::string(2 * kMostLine, 'y') + "\n" + whole);
    Contents read = contents();
    EXPECT_EQ(read.events.size(), 3u);
    EXPECT_EQ(read.not_ours, 3u);
}

TEST_F(JournalTest, GrowsToABound) {
    Writer writer(directory_, 7);
    const std::string much(1900, 'z');
    for (int i = 0; i < 5000; ++i) writer.note(Kind::loss, {{"number", i}, {"why", much}});
    EXPECT_LE(fs::file_size(directory_ + "/" + kName), kMostBytes + kMostLine);
    EXPECT_LE(fs::file_size(directory_ + "/" + kOlder), kMostBytes + kMostLine);
    Contents read = contents();
    EXPECT_EQ(read.not_ours, 0u);
    ASSERT_GT(read.events.size(), 2000u);
    for (size_t i = 0; i < read.events.size(); ++i)
        EXPECT_EQ(number_in(read.events[i], "number"), 5000. - static_cast<double>(read.events.size() - i));
}

// A limit of the file's size stands for a disk that is full.
TEST_F(JournalTest, AFullDiskCostsTheJournal) {
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, SIG_IGN);
    Writer writer(directory_, 7);
    writer.note(Kind::start,
                {{"why", std::string(1900, 'z')}});  // longer than what is said on stderr, a file too
    rlimit small = before;
    small.rlim_cur = fs::file_size(directory_ + "/" + kName) + 20;
    ::setrlimit(RLIMIT_FSIZE, &small);
    testing::internal::CaptureStderr();
    writer.note(Kind::loss, {{"why", "is cut off"}});
    writer.note(Kind::loss, {{"why", "is lost"}});
    std::string said = testing::internal::GetCapturedStderr();
    ::setrlimit(RLIMIT_FSIZE, &before);
    writer.note(Kind::end);
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_NE(said.find("journal"), std::string::npos);
    Contents read = contents();
    ASSERT_EQ(read.events.size(), 2u) << text();
    EXPECT_EQ(read.events[1].kind, Kind::end);
    EXPECT_EQ(read.not_ours, 1u);
}

TEST_F(JournalTest, ALostDirectoryCostsTheJournal) {
    testing::internal::CaptureStderr();
    Writer writer(directory_ + "/gone", 7);
    writer.note(Kind::start);
    writer.note(Kind::end);
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(JournalTest, IsFollowed) {
    Follower follower(directory_);
    EXPECT_TRUE(follower.more(2).empty());
    Writer writer(directory_, 7);
    for (int i = 0; i < 5; ++i) writer.note(Kind::loss, {{"number", i}});
    Follower late(directory_);
    ASSERT_EQ(late.more(2).size(), 2u);
    EXPECT_EQ(late.more(2).size(), 0u);
    std::string line = text();
    line.resize(line.find('\n') + 1);
    put(line.substr(0, 20));
    EXPECT_EQ(late.more(2).size(), 0u);
    put(line.substr(20));
    EXPECT_EQ(late.more(2).size(), 1u);
    // Rotated: the end of the old one and the beginning of the new one.
    const std::string much(1900, 'z');
    size_t seen = 0;
    for (int i = 0; i < 3000; ++i) {
        writer.note(Kind::loss, {{"why", much}});
        if (i % 100 == 99) seen += late.more(2).size();
    }
    EXPECT_EQ(seen, 3000u);
    ASSERT_TRUE(fs::exists(directory_ + "/" + kOlder));
}

TEST(Journal, TextOfSeveralLinesIsOneSentence) {
    auto event = parse_line(
        R"({"time":"2026-11-26T09:10:03.000Z","job":"1122334455667788","event":"phase","phase":"request","seconds":6.5,"waits":"rank 2 on a: waits\nrank 0 on b: loads\n"})");
    ASSERT_TRUE(event);
    EXPECT_EQ(sentence(*event), "request: 6.500 s, where it waited: rank 2 on a: waits; rank 0 on b: loads");
}

// docs/formats/journal.md: the lines of its example are what these events are written as.
TEST(JournalPage, ExampleIsWhatIsWritten) {
    std::ifstream file(std::string(FORMATS) + "/journal.md");
    std::string line;
    size_t lines = 0, sentences = 0;
    std::string said;
    while (std::getline(file, line)) {
        if (line.starts_with("    {")) {
            // A page has lines of a limited length: an event goes on where an indented line follows.
            std::string more;
            while (line.back() != '}' && std::getline(file, more))
                line += more.substr(more.find_first_not_of(' '));
            auto event = parse_line(line.substr(4));
            ASSERT_TRUE(event) << line;
            EXPECT_EQ(parse_line(to_line(*event).substr(0, to_line(*event).size() - 1)), event);
            said = sentence(*event);
            ++lines;
        } else if (line.starts_with("    # ")) {
            EXPECT_EQ(line.substr(6), said);
            ++sentences;
        }
    }
    EXPECT_GE(lines, 9u);
    EXPECT_EQ(lines, sentences);
}

}  // namespace
}  // namespace fermata::journal
