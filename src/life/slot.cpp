#include "life/slot.h"

#include <time.h>

#include <charconv>
#include <cstdlib>

#include "launch/programs.h"

namespace fermata::life {
namespace {

constexpr int64_t kPatienceMs = 3000;

}  // namespace

std::optional<int64_t> time_of_squeue(const std::string& text) {
    tm parts{};
    const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    if (!end || (*end != 0 && *end != '\n')) return {};
    parts.tm_isdst = -1;
    time_t time = ::mktime(&parts);
    if (time <= 0) return {};
    return time;
}

std::optional<double> seconds_left_in_slot(bool ask) {
    const char* job = std::getenv("SLURM_JOB_ID");
    if (!job) return {};
    const int64_t now = ::time(nullptr);
    if (const char* said = std::getenv("SLURM_JOB_END_TIME"); said && !ask) {
        const std::string text = said;
        int64_t end = 0;
        auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), end);
        if (error == std::errc{} && at == text.data() + text.size() && end > now)
            return static_cast<double>(end - now);
    }
    // UNLIMITED or N/A is no time.
    // What it complains of is nobody's concern: without an answer there is --walltime.
    launch::Answer answer =
        launch::ask(launch::in_path("squeue"), {"--noheader", "--jobs", job, "--format", "%e"}, kPatienceMs,
                    launch::Errors::silent);
    auto end = time_of_squeue(answer.well ? answer.text : "");
    if (!end || *end <= now) return {};
    return static_cast<double>(*end - now);
}

}  // namespace fermata::life
