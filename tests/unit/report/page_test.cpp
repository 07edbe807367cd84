// The page of a job: bounded whatever the journal holds, and nothing that others have written is markup.
#include "report/page.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "report/timeline.h"

namespace fermata::report {
namespace {

using journal::Event;
using journal::Kind;
using nlohmann::json;

size_t count_of(const std::string& text, const std::string& word) {
    size_t count = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
    return count;
}

std::string page_of(const std::vector<Event>& events) { return page(journal::histories(events).at(0)); }

// Each phase took each block some time, the last one of them longest.
json phases_of(size_t blocks, size_t ranks, size_t salt) {
    json phases = json::object();
    for (const char* name : {"converge", "freeze", "drain", "suspend", "save"}) {
        json seconds = json::array(), slowest = json::array();
        for (size_t i = 0; i < blocks; ++i) {
            seconds.push_back(i + 1 == blocks ? 3.5 : 0.001 * static_cast<double>((i * 7 + salt) % 100));
            slowest.push_back((i + 1) * ranks / blocks - 1);
        }
        phases[name] = {{"seconds", seconds}, {"slowest", slowest}, {"mean", 0.05}, {"host", "node-7"}};
    }
    return phases;
}

// As many lives and checkpoints as two full journals hold, of 10,000 ranks on 500 nodes.
std::vector<Event> large(size_t lives, size_t checkpoints) {
    std::vector<Event> events;
    int64_t now = 1'764'147'600'000;
    size_t generation = 0;
    auto add = [&](Kind kind, json fields) { events.push_back({kind, 7, now += 500, std::move(fields)}); };
    for (size_t life = 0; life < lives; ++life) {
        add(Kind::start, {{"name", "large"}, {"ranks", 10000}, {"restored", life ? "gen-000001" : ""}});
        add(Kind::running, {{"ranks", 10000}, {"nodes", 500}, {"mpi", "mpich"}});
        for (size_t i = 0; i < checkpoints; ++i) {
            const std::string name = fmt::format("gen-{:06}", ++generation);
            for (const char* phase :
                 {"request", "targets", "converge", "freeze", "drain", "suspend", "commit"})
                add(Kind::phase,
                    {{"phase", phase},
                     {"seconds", 0.01 * static_cast<double>(i % 300)},
                     {"generation", name},
                     {"last", fmt::format("node-{}", (generation * 37) % 500)},
                     {"waits",
                      i % 3 ? ""
                            : fmt::format(
                                  "rank {} on node-{}: MPI_Recv from rank {}\nrank 5 on node-0: MPI_Barrier",
                                  generation % 10000, i, i + 1)}});
            add(Kind::ranks, {{"ranks", 10000}, {"blocks", 64}, {"phases", phases_of(64, 10000, i)}});
            add(Kind::checkpoint, {{"ok", i % 7 != 0},
                                   {"generation", name},
                                   {"level", "memory"},
                                   {"line", "line"},
                                   {"bytes", 1ull << 40},
                                   {"seconds", 2.5},
                                   {"standing", 1.0},
                                   {"cost", 1.0},
                                   {"bandwidth", 1e12}});
            add(Kind::copy, {{"ok", true}, {"generation", name}, {"level", "files"}, {"seconds", 1.5}});
        }
        add(Kind::loss, {{"why", "rank 1 is gone"}, {"rank", 1}});
        add(Kind::end, {{"code", 137}});
        add(Kind::restart, {{"from", "gen-000001"}});
    }
    return events;
}

TEST(Page, IsBoundedWhateverTheJournalHolds) {
    for (auto [lives, checkpoints] : {std::pair<size_t, size_t>{1, 4000}, {2000, 1}, {40, 100}, {1, 1}}) {
        const std::string text = page_of(large(lives, checkpoints));
        EXPECT_LT(text.size(), 3u << 20) << lives << " lives of " << checkpoints;
        EXPECT_LT(count_of(text, "<rect"), kMostShapes + 8000) << lives << " lives of " << checkpoints;
        EXPECT_NE(text.find("</html>"), std::string::npos);
        EXPECT_EQ(count_of(text, "<svg"), count_of(text, "</svg>"));
    }
}

TEST(Page, NothingThatOthersHaveWrittenIsMarkup) {
    const std::string evil = "</title></style><script>alert(1)</script><img src=x onerror='x'>\"&\x1b[2J\x80";
    json all = {{"name", evil},     {"host", evil},       {"command", {evil}}, {"directory", evil},
                {"restored", evil}, {"mpi", evil},        {"why", evil},       {"phase", "drain"},
                {"last", evil},     {"waits", evil},      {"origin", evil},    {"level", evil},
                {"line", evil},     {"generation", evil}, {"newest", evil},    {"from", evil},
                {"seconds", 3},     {"standing", 1},      {"bandwidth", 5},    {"bytes", 50},
                {"ok", true},       {"ranks", 2},         {"code", 1},         {"blocks", 2}};
    all["phases"] = {{"save", {{"seconds", {1, 2}}, {"slowest", {0, 1}}, {"mean", 1.5}, {"host", evil}}},
                     {evil, {{"seconds", {1, 2}}, {"slowest", {0, 1}}, {"mean", 1.5}, {"host", evil}}}};
    std::vector<Event> events;
    int64_t now = 1'764'147'600'000;
    for (bool ok : {true, false})
        for (Kind kind : {Kind::start, Kind::running, Kind::request, Kind::phase, Kind::ranks,
                          Kind::checkpoint, Kind::copy, Kind::renewal, Kind::masked, Kind::replica,
                          Kind::injected, Kind::loss, Kind::end, Kind::restart, Kind::given_up}) {
            all["ok"] = ok;
            events.push_back({kind, 7, now += 1000, all});
        }
    const std::string text = page_of(events);
    for (const char* word : {"<script", "<img", "\x1b", "\x80[", "onerror='"})
        EXPECT_EQ(text.find(word), std::string::npos) << word;
    EXPECT_EQ(count_of(text, "</style>"), 1u);
    EXPECT_EQ(count_of(text, "</title></style>"), 0u);
    EXPECT_GT(count_of(text, "&lt;script&gt;"), 5u);
}

// A mark in the life that went on, and neither a failure nor lost work.
TEST(Page, ADeathThatACopyMaskedIsAMark) {
    auto text_with = [](bool masked) {
        std::vector<Event> events = {{Kind::start, 7, 1'764'147'600'000, {{"name", "s"}}},
                                     {Kind::running, 7, 1'764'147'601'000, {{"ranks", 2}}}};
        if (masked)
            events.push_back({Kind::masked,
                              7,
                              1'764'147'620'000,
                              {{"rank", 1},
                               {"line", "rank 1 was killed"},
                               {"seconds", 0.4},
                               {"phases", {{"wait", 0.1}, {"freeze", 0.02}, {"renew", 0.25}}}}});
        events.push_back({Kind::end, 7, 1'764'147'640'000, {{"code", 0}}});
        return page_of(events);
    };
    const std::string with = text_with(true), without = text_with(false);
    const std::string marks = "<rect class=\"masked\"";
    EXPECT_EQ(count_of(with, marks), count_of(without, marks) + 1);
    EXPECT_EQ(count_of(with, "class=\"lost\""), count_of(without, "class=\"lost\""));
    EXPECT_EQ(count_of(with, "class=\"fail\""), count_of(without, "class=\"fail\""));
    EXPECT_NE(with.find("rank 1 was killed; all went on after"), std::string::npos);
    EXPECT_NE(with.find("freeze 0.020 s, renew 0.250 s, wait 0.100 s"), std::string::npos);
    EXPECT_EQ(without.find("masked by copies"), std::string::npos);
}

// The last of four ranks is slow in saving, and waited in a call once.
TEST(Page, TheSlowestRankIsTheDarkestAndHasAName) {
    std::vector<Event> events = {{Kind::start, 7, 1'764'147'600'000, {{"name", "s"}}},
                                 {Kind::running, 7, 1'764'147'601'000, {{"ranks", 4}}}};
    const json
        save = {{"seconds", {0.1, 0.2, 0.1, 4.0}}, {"slowest", {0, 1, 2, 3}}, {"mean", 1.1}, {"host", "n"}},
        drain = {{"seconds", {0.1, 0.1, 0.3, 0.1}}, {"slowest", {0, 1, 2, 3}}, {"mean", 0.2}, {"host", "m"}};
    for (int64_t i = 0; i < 3; ++i) {
        const int64_t at = 1'764'147'610'000 + 10'000 * i;
        if (i == 1)
            events.push_back(
                {Kind::phase,
                 7,
                 at,
                 {{"phase", "suspend"},
                  {"seconds", 4.5},
                  {"waits", "rank 30 on n: MPI_Send to rank 3\nrank 3 on n: MPI_Recv from rank 0"}}});
        events.push_back({Kind::ranks,
                          7,
                          at,
                          {{"ranks", 4}, {"blocks", 4}, {"phases", {{"save", save}, {"drain", drain}}}}});
        events.push_back({Kind::checkpoint,
                          7,
                          at + 1,
                          {{"ok", true}, {"generation", "g"}, {"seconds", 5}, {"standing", 5}}});
    }
    const std::string text = page_of(events);
    const std::string cell = "<rect data-k=\"ranks.save\" data-v=\"";
    EXPECT_EQ(count_of(text, cell), 4u);
    EXPECT_EQ(count_of(text, cell + "12\" class=\"h6\""), 1u);
    // The last in a shorter phase, by that one's scale.
    EXPECT_EQ(count_of(text, "<rect data-k=\"ranks.drain\" data-v=\"0.8999999999999999\" class=\"h6\""), 1u);
    EXPECT_EQ(count_of(text, "rank 3, save: 12.0 s in all, at most 4.00 s (rank 3)"), 1u);
    EXPECT_EQ(count_of(text, "<rect data-k=\"ranks.checkpoint\""), 12u);
    EXPECT_EQ(count_of(text, "<rect data-k=\"ranks.checkpoint\" data-v=\"4.1\" class=\"h6\""), 3u);
    const size_t first = text.find("<span data-k=\"slowest.rank\" data-v=\"3\">3</span>");
    const size_t second = text.find("<span data-k=\"slowest.rank\" data-v=\"2\">2</span>");
    ASSERT_NE(first, std::string::npos);
    ASSERT_NE(second, std::string::npos);
    EXPECT_LT(first, second);
    const std::string row = text.substr(first, second - first);
    EXPECT_NE(row.find("<td>rank 3 on n: MPI_Recv from rank 0</td>"), std::string::npos) << row;
    EXPECT_NE(row.find("<span data-k=\"slowest.times\" data-v=\"3\""), std::string::npos) << row;
    EXPECT_NE(row.find("<span data-k=\"slowest.seconds\" data-v=\"12\""), std::string::npos) << row;
    // Nobody has measured it: nothing is drawn.
    for (Event& event : events) event.fields.erase("phases");
    EXPECT_EQ(page_of(events).find("Ranks in the phases"), std::string::npos);
}

TEST(Page, OfAJobThatHasJustBegun) {
    const std::vector<Event> begun = {{Kind::start, 7, 1'764'147'600'000, {{"name", "s"}}}};
    const std::string text = page_of(begun);
    EXPECT_NE(text.find("No checkpoint was measured"), std::string::npos);
    EXPECT_EQ(text.find("nan"), std::string::npos);
    EXPECT_EQ(text.find("inf"), std::string::npos);
}

TEST(Page, OfNumbersThatCannotBe) {
    std::vector<Event> events;
    for (int64_t time : {int64_t{253'402'300'799'000}, int64_t{0}})  // the clock was set back, by far
        for (Kind kind :
             {Kind::start, Kind::running, Kind::phase, Kind::checkpoint, Kind::copy, Kind::loss, Kind::end})
            events.push_back({kind,
                              7,
                              time,
                              {{"ok", true},
                               {"seconds", 1e300},
                               {"standing", -1e300},
                               {"bandwidth", 1e-300},
                               {"bytes", 1e300},
                               {"ranks", 1e300}}});
    const std::string text = page_of(events);
    EXPECT_NE(text.find("</html>"), std::string::npos);
    EXPECT_EQ(text.find("\"nan\""), std::string::npos);
    EXPECT_EQ(text.find("\"inf\""), std::string::npos);
}

}  // namespace
}  // namespace fermata::report
