// Numbers for Prometheus: what they count, that no counter falls, names of others in labels, the file.
#include "metrics/metrics.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"

namespace fermata::metrics {
namespace {
namespace fs = std::filesystem;

using journal::Event;
using journal::Kind;
using nlohmann::json;

// "name{labels}" without the job's -> value.
std::map<std::string, double> values(const std::string& text) {
    std::map<std::string, double> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("#")) continue;
        const size_t space = line.rfind(' ');
        std::string name = line.substr(0, space);
        const size_t job = name.find("fermata_job=\"j\"");
        EXPECT_NE(job, std::string::npos) << line;
        name.erase(job, std::string("fermata_job=\"j\"").size() + (name[job + 15] == ',' ? 1 : 0));
        EXPECT_FALSE(all.contains(name)) << name << " twice";
        all[name] = std::stod(line.substr(space + 1));
    }
    return all;
}

struct Told {
    Numbers numbers;
    std::map<std::string, double> before;
    void at(double seconds, Kind kind, json fields = json::object()) {
        numbers.hear({kind, 7, static_cast<int64_t>(seconds * 1000), std::move(fields)});
        auto now = values(numbers.text(static_cast<int64_t>(seconds * 1000)));
        for (const auto& [name, value] : before)
            if (name.find("_total") != std::string::npos || name.find("_bucket") != std::string::npos) {
                EXPECT_GE(now[name], value) << name;
            }
        before = now;
    }
};

TEST(Metrics, CountWhatHappens) {
    Told job;
    job.at(100, Kind::start, {{"name", "j"}, {"host", "a"}, {"restored", ""}});
    job.at(101, Kind::running, {{"ranks", 4}, {"nodes", 2}, {"mpi", "mpich"}});
    EXPECT_EQ(job.before["fermata_job_running{}"], 1);
    job.at(110, Kind::phase, {{"phase", "drain"}, {"seconds", 0.25}});
    job.at(111, Kind::checkpoint,
           {{"ok", true},
            {"generation", "gen-000001"},
            {"seconds", 2.0},
            {"standing", 0.5},
            {"behind", 1.0},
            {"cost", 0.6},
            {"bytes", 1000},
            {"bandwidth", 500}});
    job.at(112, Kind::copy, {{"ok", true}, {"level", "buddy"}, {"bytes", 1000}, {"seconds", 3}});
    job.at(113, Kind::checkpoint, {{"ok", false}});
    job.at(121, Kind::loss, {{"why", "gone"}});
    job.at(121.5, Kind::loss, {{"why", "gone, too"}});
    job.at(122, Kind::end, {{"code", 137}});
    EXPECT_EQ(job.before["fermata_job_running{}"], 0);
    EXPECT_EQ(job.before["fermata_job_running_seconds_total{}"], 21);
    job.at(122, Kind::restart, {{"from", "gen-000001"}});
    job.at(123, Kind::start, {{"restored", "gen-000001"}});
    job.at(124, Kind::running, {{"ranks", 4}, {"nodes", 2}});
    job.at(130, Kind::end, {{"code", 0}});
    const std::map<std::string, double> wanted = {
        {"fermata_job_lives_total{}", 2},
        {"fermata_job_failures_total{}", 1},
        {"fermata_job_restarts_total{}", 1},
        {"fermata_job_lost_work_seconds_total{}", 11},  // captured at 110
        {"fermata_job_running_seconds_total{}", 27},
        {"fermata_job_ranks{}", 4},
        {"fermata_job_start_time_seconds{}", 100},
        {"fermata_checkpoints_total{result=\"ok\"}", 1},
        {"fermata_checkpoints_total{result=\"failed\"}", 1},
        {"fermata_checkpoint_duration_seconds_bucket{le=\"1\"}", 0},
        {"fermata_checkpoint_duration_seconds_bucket{le=\"3\"}", 1},
        {"fermata_checkpoint_duration_seconds_bucket{le=\"+Inf\"}", 1},
        {"fermata_checkpoint_duration_seconds_sum{}", 2},
        {"fermata_checkpoint_cost_seconds_total{}", 0.6},
        {"fermata_last_checkpoint_timestamp_seconds{}", 111},
        {"fermata_phase_seconds_total{phase=\"drain\"}", 0.25},
        {"fermata_copies_total{level=\"buddy\",result=\"ok\"}", 1},
        {"fermata_copy_seconds_total{level=\"buddy\"}", 3}};
    for (const auto& [name, value] : wanted) {
        ASSERT_TRUE(job.before.contains(name)) << name;
        EXPECT_DOUBLE_EQ(job.before[name], value) << name;
    }
}

TEST(Metrics, ADeathThatACopyMaskedIsNoFailure) {
    Told job;
    job.at(100, Kind::start, {{"name", "j"}});
    job.at(101, Kind::running, {{"ranks", 2}});
    job.at(102, Kind::replica, {{"what", "made"}, {"rank", 0}, {"had", 1}, {"wanted", 2}});
    job.at(102, Kind::replica, {{"what", "made"}, {"rank", 1}, {"had", 2}, {"wanted", 2}});
    job.at(103, Kind::replica, {{"what", "leads"}, {"rank", 1}, {"had", 1}, {"wanted", 2}});
    job.at(104, Kind::masked, {{"rank", 1}, {"seconds", 0.5}});
    job.at(105, Kind::replica, {{"what", "refused"}, {"rank", 1}, {"had", 1}, {"wanted", 2}});
    const std::map<std::string, double> wanted = {{"fermata_replicas{}", 1},
                                                  {"fermata_replicas_wanted{}", 2},
                                                  {"fermata_replicas_made_total{}", 2},
                                                  {"fermata_replicas_ended_total{}", 1},
                                                  {"fermata_masked_failures_total{}", 1},
                                                  {"fermata_masked_seconds_total{}", 0.5},
                                                  {"fermata_job_failures_total{}", 0},
                                                  {"fermata_job_lost_work_seconds_total{}", 0},
                                                  {"fermata_job_running{}", 1}};
    for (const auto& [name, value] : wanted) {
        ASSERT_TRUE(job.before.contains(name)) << name;
        EXPECT_DOUBLE_EQ(job.before[name], value) << name;
    }
    job.at(110, Kind::end, {{"code", 0}});
    EXPECT_EQ(job.before["fermata_replicas{}"], 0);
}

TEST(Metrics, AFailureThatNobodySawIsOneAllTheSame) {
    Told job;
    job.at(0.5, Kind::start, {{"name", "j"}});
    job.at(1, Kind::running);
    job.at(5, Kind::end, {{"code", 1}});
    EXPECT_EQ(job.before["fermata_job_failures_total{}"], 1);
    job.at(6, Kind::start, {{"restored", ""}});
    EXPECT_EQ(job.before["fermata_job_lost_work_seconds_total{}"], 4);
    job.at(7, Kind::running);
    job.at(9, Kind::end, {{"code", 85}});
    EXPECT_EQ(job.before["fermata_job_failures_total{}"], 1);
}

TEST(Metrics, ClocksAndNumbersThatCannotBe) {
    Told job;
    job.at(1000, Kind::start, {{"name", "j"}});
    job.at(1000, Kind::running, {{"ranks", -5}});
    job.at(10, Kind::checkpoint, {{"ok", true}, {"seconds", -1}, {"bytes", -1}, {"cost", "x"}});
    job.at(5, Kind::end, {{"code", 1e300}});
    EXPECT_EQ(job.before["fermata_job_running_seconds_total{}"], 0);
    for (int i = 0; i < 1000; ++i)
        job.numbers.hear({Kind::phase, 7, 5000, {{"phase", std::to_string(i)}, {"seconds", 1}}});
    EXPECT_LT(job.numbers.text(5000).size(), 20000u);
}

TEST(Metrics, NamesOfOthersStayInTheirQuotes) {
    Numbers numbers;
    numbers.hear({Kind::start, 7, 1000, {{"name", "j"}, {"host", "a\"} 1\nfermata_evil 5\\\xff"}}});
    const std::string text = numbers.text(1000);
    EXPECT_EQ(text.find("\nfermata_evil"), std::string::npos);
    EXPECT_NE(text.find(R"(host="a\"} 1\\x0afermata_evil 5\\\\xff"})"), std::string::npos) << text;
}

TEST(Metrics, TheFileIsWholeAndForEverybody) {
    char name[] = "/tmp/fermata-metrics-XXXXXX";
    const std::string directory = mkdtemp(name), path = directory + "/job.prom";
    Metrics metrics(path);
    metrics.hear({Kind::start, 7, 1000, {{"name", "j"}, {"host", "a"}}});
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(values(text)["fermata_job_lives_total{}"], 1);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0644u);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory), {}), 1);
    fs::remove_all(directory);
    metrics.hear({Kind::end, 7, 2000, {{"code", 0}}});  // one line on stderr, and the job goes on
    metrics.hear({Kind::end, 7, 2000, {{"code", 0}}});
    EXPECT_THROW(Metrics{path}, Error);
}

}  // namespace
}  // namespace fermata::metrics
