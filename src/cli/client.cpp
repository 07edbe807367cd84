// Commands that talk to a running job through its control socket.
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/copies.h"
#include "cli/job_repair.h"
#include "cli/watch.h"
#include "launch/library_at.h"
#include "root/control/control.h"
#include "tree/channel.h"
#include "tree/local_socket.h"
#include "tree/run_dir.h"

namespace fs = std::filesystem;
using nlohmann::json;

namespace fermata::cli {
namespace {

constexpr double kStoppedPatience = 1;         // seconds for a stopped supervisor to go on
constexpr double kRepairPatience = 24 * 3600;  // seconds: every byte of all generations is read
constexpr int kLookMs = 1000;                  // how often to look whether it is stopped

[[noreturn]] void no_job(const std::string& line) { throw Error(line, ExitCode::no_job); }

Fd connect_to(const std::string& job) {
    for (const std::string& base : tree::run_bases())
        if (Fd socket = tree::connect_local(base + "/" + job, "control")) return socket;
    return {};
}

// Ctrl-Z or SIGSTOP: the kernel takes connections for it, and nobody answers.
std::optional<pid_t> stopped_supervisor(const Fd& socket) {
    pid_t pid = tree::peer_of(socket.get()).pid;
    try {
        std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
        auto name_end = stat.rfind(')');
        if (pid > 0 && name_end != std::string::npos && stat.size() > name_end + 2 &&
            stat[name_end + 2] == 'T')
            return pid;
    } catch (const Error&) {  // gone, or in another process namespace
    }
    return std::nullopt;
}

std::string what_stopped_means(const std::string& job, pid_t pid) {
    return fmt::format(
        "the supervisor of job {}, process {}, is stopped: kill -CONT {} (or fg in its shell) lets it go on",
        job, pid, pid);
}

// Looks for a moment: a supervisor may just be waking up. Nothing is asked of one that is stopped: it would
// do it when nobody expects that any more.
void check_awake(const Fd& socket, const std::string& job, double patience) {
    int64_t end = tree::now_ms() + static_cast<int64_t>(std::min(patience, kStoppedPatience) * 1000);
    while (auto pid = stopped_supervisor(socket)) {
        if (tree::now_ms() >= end) throw Error(what_stopped_means(job, *pid), ExitCode::timeout);
        ::usleep(20000);
    }
}

// Sends the request and hands each line of the answer to `progress`; returns the last one.
json ask(Fd socket, const std::string& job, const root::ControlRequest& request, double timeout,
         const std::function<void(const json&)>& progress = nullptr) {
    check_awake(socket, job, timeout);
    std::string line = root::to_json(request) + "\n";
    write_all(socket.get(), line.data(), line.size(), "the control socket of job " + job);
    std::string in;
    int64_t end = tree::now_ms() + static_cast<int64_t>(timeout * 1000);
    for (;;) {
        for (size_t at; (at = in.find('\n')) != std::string::npos;) {
            json answer = json::parse(in.substr(0, at), nullptr, false);
            in.erase(0, at + 1);
            if (!answer.is_object()) fail("job {} answers in a language this command does not know", job);
            if (answer.value("done", false)) return answer;
            if (progress) progress(answer);
        }
        pollfd wait{socket.get(), POLLIN, 0};
        int64_t left = end - tree::now_ms();
        if (left <= 0) throw Error(fmt::format("job {} does not answer", job), ExitCode::timeout);
        if (::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, kLookMs))) == 0) {
            check_awake(socket, job, kStoppedPatience);
            continue;
        }
        char buffer[16384];
        ssize_t n = ::recv(socket.get(), buffer, sizeof buffer, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) fail("job {} ended before it answered", job);
        in.append(buffer, static_cast<size_t>(n));
    }
}

std::vector<std::string> running_jobs() {
    std::vector<std::string> jobs;
    for (const std::string& base : tree::run_bases())
        for (const std::string& name : tree::living(base)) {
            auto dir = files::Folder::find_at(base + "/" + name);
            if (dir && dir->has("control")) jobs.push_back(name);  // not a node daemon's
        }
    return jobs;
}

json status_of(const std::string& job, bool diagnosis = false) {
    Fd socket = connect_to(job);
    if (!socket) return nullptr;
    root::ControlRequest request;
    request.verb = "status";
    request.diagnosis = diagnosis;
    try {
        return ask(std::move(socket), job, request, 30);
    } catch (const Error& error) {
        if (error.code() != ExitCode::timeout) return nullptr;  // it is just ending
        return {{"job", job}, {"state", "unanswered"}, {"line", error.what()}};
    }
}

std::string find_job(const JobChoice& which) {
    std::vector<std::string> jobs = running_jobs();
    if (!which.job.empty()) {
        if (std::find(jobs.begin(), jobs.end(), which.job) == jobs.end())
            no_job(fmt::format("no job called {} is running{}", which.job,
                               jobs.empty() ? "" : fmt::format("; running: {}", fmt::join(jobs, ", "))));
        return which.job;
    }
    if (!which.ckpt_dir.empty()) {
        std::string silent;
        std::error_code error;
        fs::path wanted = fs::weakly_canonical(which.ckpt_dir, error);
        std::string file = file_id(wanted.string());
        for (const std::string& job : jobs) {
            json status = status_of(job);
            if (!status.is_object()) continue;
            // JSON does not hold every name (Latin-1).
            if (fs::weakly_canonical(status.value("ckpt_dir", ""), error) == wanted ||
                (!file.empty() && status.value("ckpt_dir_file", "") == file))
                return job;
            if (status.contains("line")) silent += "; " + status.value("line", "");
        }
        no_job(fmt::format("no running job writes to {}{}", wanted.string(), silent));
    }
    if (jobs.empty()) no_job("no job is running");
    if (jobs.size() > 1)
        no_job(fmt::format("{} jobs are running: choose one with --job: {}", jobs.size(),
                           fmt::join(jobs, ", ")));
    return jobs[0];
}

Fd connect_or_fail(const std::string& job) {
    Fd socket = connect_to(job);
    if (!socket) no_job(fmt::format("job {} is just ending", job));
    return socket;
}

void print_json(json j) {
    if (j.is_object()) j.erase("done");
    std::printf("%s\n", j.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

// Where the ranks are, or who is missing.
std::string places_of(const json& s) {
    std::string hosts;
    for (const json& node : s.at("nodes"))
        if (node.value("ranks", 0) > 0)
            hosts += fmt::format("{}{} ({} ranks)", hosts.empty() ? "" : ", ",
                                 visible(node.value("host", "")), node.value("ranks", 0));
    std::string line = s.value("size", 0) > 0 ? fmt::format("{} on {}", s.value("size", 0), hosts) : "";
    std::string missing = s.value("missing", "");
    if (!missing.empty()) line += (line.empty() ? "" : "; ") + missing;
    return line.empty() ? "none" : line;
}

// When checkpoints come by themselves, and from what numbers that follows.
void print_schedule(const json& schedule) {
    auto number = [](const json& in, const char* name) { return in.value(name, 0.0); };
    if (auto found = schedule.find("interval"); found != schedule.end()) {
        const json& interval = *found;
        fmt::print("  interval     {:.3g} s", number(interval, "seconds"));
        if (interval.value("auto", false)) {
            if (interval.contains("cost"))
                fmt::print(", by Daly's formula: a checkpoint costs {:.3g} s, failures come every {:.0f} s",
                           number(interval, "cost"), number(interval, "mtbf"));
            else
                fmt::print(", until one has been measured");
        }
        fmt::print("\n");
    }
    if (auto found = schedule.find("walltime"); found != schedule.end()) {
        const json& walltime = *found;
        fmt::print("  wall time    ends in {:.0f} s ({}), the last checkpoint begins in {:.0f} s: ",
                   number(walltime, "ends_in"), visible(walltime.value("by", "")),
                   number(walltime, "last_in"));
        if (walltime.contains("predicted"))
            fmt::print("{:.3g} s predicted ({} at {}/s) and {:.3g} s margin\n", number(walltime, "predicted"),
                       human_size(walltime.value("bytes", uint64_t{0})),
                       human_size(static_cast<uint64_t>(number(walltime, "bandwidth"))),
                       number(walltime, "margin"));
        else
            fmt::print("none has been measured yet\n");
    }
}

// Prints the choice of `--levels auto`, and the numbers that it follows from.
void print_plan(const json& plan) {
    auto number = [](const json& in, const char* name) { return in.value(name, 0.0); };
    if (!plan.contains("levels")) return fmt::print("  planned      not yet: each level is measured first\n");
    fmt::print("  planned      for a failure every {:.0f} s: {:.2g} % of the time is lost\n",
               number(plan, "mtbf"), 100 * number(plan, "loss"));
    for (const json& one : plan.at("levels"))
        fmt::print("    {:<9}  every {:.1f} s (best {:.1f} s): one costs {:.3g} s, needed every {:.0f} s\n",
                   visible(one.value("name", "")), number(one, "period"), number(one, "best"),
                   number(one, "cost"), 1 / std::max(number(one, "rate"), 1e-12));
    if (plan.contains("no_buddies"))
        fmt::print("    no buddies: {}\n", visible(plan.value("no_buddies", "")));
}

// Which generations are where, of a job that keeps some on nodes.
void print_levels(const json& memory) {
    auto text = [&](const char* name) { return visible(memory.value(name, std::string())); };
    if (memory.empty()) return;
    fmt::print("  levels       {}\n", text("levels"));
    if (memory.contains("auto")) print_plan(memory.at("auto"));
    const auto size = [&] {
        const size_t nodes = memory.at("nodes").size();
        return fmt::format(", {} on {} node{}", human_size(memory.value("bytes", uint64_t{0})), nodes,
                           nodes == 1 ? "" : "s");
    };
    if (memory.contains("memory")) fmt::print("  in memory    {}{}\n", text("memory"), size());
    if (memory.contains("local") || memory.contains("to_local") || memory.contains("local_trouble")) {
        fmt::print("  in local     {}{}", memory.contains("local") ? text("local") : "none yet",
                   memory.contains("local") && !memory.contains("memory") ? size() : "");
        if (memory.contains("to_local")) fmt::print(", copying {}", text("to_local"));
        if (memory.contains("local_trouble")) fmt::print(" ({})", text("local_trouble"));
        fmt::print("\n");
    }
    if (memory.contains("buddies")) {
        fmt::print("  with buddies {}", memory.contains("buddied") ? text("buddied") : "none yet");
        if (memory.contains("to_buddies")) fmt::print(", copying {}", text("to_buddies"));
        if (memory.contains("buddies_trouble")) fmt::print(" ({})", text("buddies_trouble"));
        fmt::print("\n");
    }
    if (memory.contains("parity") || memory.contains("to_parity") || memory.contains("parity_trouble")) {
        fmt::print("  with parity  {}", memory.contains("parity") ? text("parity") : "none yet");
        if (memory.contains("to_parity")) fmt::print(", encoding {}", text("to_parity"));
        if (memory.contains("parity_trouble")) fmt::print(" ({})", text("parity_trouble"));
        fmt::print("\n");
    }
    if (memory.contains("files")) fmt::print("  in files     {}\n", text("files"));
    if (memory.contains("copying")) fmt::print("  copying      {} to files\n", text("copying"));
}

void print_status(const json& s, bool waits) {
    auto text = [&](const char* name) { return visible(s.value(name, std::string())); };
    if (s.contains("line")) return fmt::print("job {}: {}\n", text("job"), text("line"));
    fmt::print("job {}: {}", text("job"), text("state"));
    if (text("phase") != text("state")) fmt::print(", {}", text("phase"));
    std::string command;
    for (const json& word : s.at("command"))
        command += fmt::format("{}{}", command.empty() ? "" : " ", visible(word.get<std::string>()));
    fmt::print("\n  command      {}\n  ranks        {}\n", command, places_of(s));
    fmt::print("  mpi          {}\n",
               text("mpi_version").empty() ? "not known before a rank has reported" : text("mpi_version"));
    fmt::print("  checkpoints  {} in {}\n", s.value("checkpoints", 0), text("ckpt_dir"));
    fmt::print("  running for  {:.0f} s, supervisor pid {}\n", s.value("seconds", 0.0), s.value("pid", 0));
    print_schedule(s.value("schedule", json::object()));
    print_levels(s.value("memory", json::object()));
    print_copies(s.value("replicas", json()));
    if (auto own = s.find("own_state"); own != s.end() && own->is_string())
        fmt::print("  own state    {}\n",
                   own->get<std::string>().empty() ? "not saved yet" : text("own_state"));
    if (!text("restored").empty()) fmt::print("  restarted    from {}\n", text("restored"));
    if (!text("standby").empty()) fmt::print("  standby      {}\n", text("standby"));
    if (text("state") == "finishing") {
        std::string left;
        for (const json& rank : s.at("ranks"))
            if (left.size() < 200)
                left += fmt::format(" {} (pid {})", rank.value("rank", 0), rank.value("pid", 0));
        fmt::print("  after MPI_Finalize still there:{}\n", left.empty() ? " the launcher only" : left);
    }
    if (!text("trouble").empty()) fmt::print("  trouble      {}\n", text("trouble"));
    if (s.at("last").is_object()) fmt::print("  last         {}\n", visible(s["last"].value("line", "")));
    if (!waits) return;
    std::string diagnosis = s.value("diagnosis", "");
    fmt::print("  waits\n");
    for (size_t at = 0; at < diagnosis.size();) {
        size_t end = std::min(diagnosis.find('\n', at), diagnosis.size());
        fmt::print("    {}\n", visible(diagnosis.substr(at, end - at)));
        at = end + 1;
    }
    if (diagnosis.empty())
        fmt::print("    {}\n", s.at("nodes").empty()         ? "no rank has reported that could be asked"
                               : !s.value("diagnosed", true) ? "the ranks did not answer in time"
                                                             : "none: no rank stands in an MPI call");
}

}  // namespace

namespace {

// Asks for something that goes through phases, and says how it ended.
template <class Options>
int go_through_phases(const Options& options, const root::ControlRequest& request, const std::string& job) {
    bool terminal = !options.json && ::isatty(2);
    // The root ends a phase that lasts too long; this is only for a root that hangs.
    json answer = ask(connect_or_fail(job), job, request,
                      2 * (options.timeout > 0 ? options.timeout : 3600) + 7200, [&](const json& progress) {
                          if (terminal)
                              std::fprintf(stderr, "\r\033[K%s …", progress.value("phase", "").c_str());
                      });
    if (terminal) std::fprintf(stderr, "\r\033[K");
    int code = answer.value("code", 1);
    if (options.json) print_json(answer);
    std::string line = answer.value("line", "");
    for (const json& warning : answer.value("warnings", json::array()))
        std::fprintf(stderr, "fermata: warning: %s\n", warning.get<std::string>().c_str());
    if (code == 0) {
        std::string detail = options.verbose ? answer.value("detail", "") : "";
        if (!options.json)
            fmt::print("{}{}\n", visible(line), detail.empty() ? "" : fmt::format(" ({})", visible(detail)));
    } else {
        // The first line says what; a diagnosis follows.
        std::fprintf(stderr, "fermata: error: %s\n", line.c_str());
    }
    return code;
}

}  // namespace

int checkpoint(const CheckpointOptions& options) {
    std::string job = find_job(options.which);
    root::ControlRequest request;
    request.verb = "checkpoint";
    request.stop = options.stop;
    request.own_state = options.own_state;
    request.timeout = options.timeout;
    return go_through_phases(options, request, job);
}

int renew(const RenewOptions& options) {
    for (const std::string& word : options.wanted.environment)
        if (word.find('=') == word.npos || word.starts_with('='))
            throw Error(fmt::format("--env wants NAME=VALUE, not {}", visible(word)), ExitCode::usage);
    std::string job = find_job(options.which);
    root::ControlRequest request;
    request.verb = "renew";
    request.timeout = options.timeout;
    request.renewal = options.wanted;
    // The job's own directory is another one.
    if (launch::names_a_place(request.renewal.mpi))
        request.renewal.mpi = std::filesystem::absolute(request.renewal.mpi).string();
    return go_through_phases(options, request, job);
}

int replicas(const ReplicasOptions& options) {
    std::string job = find_job(options.which);
    root::ControlRequest request;
    request.verb = "replicas";
    request.replicas = options.of;
    request.timeout = options.timeout;
    // The root ends the wait; this is only for a root that hangs.
    json answer = ask(connect_or_fail(job), job, request, options.timeout + 7200);
    const int code = answer.value("code", 1);
    const std::string line = answer.value("line", "");
    if (options.json) print_json(answer);
    if (code != 0) std::fprintf(stderr, "fermata: error: %s\n", line.c_str());
    if (options.json || !answer["replicas"].is_object()) return code;
    fmt::print("job {}{}{}\n", visible(job), code == 0 && !line.empty() ? ": " : "",
               code == 0 ? visible(line) : "");
    print_copies(answer["replicas"]);
    return code;
}

int status(const StatusOptions& options) {
    if (options.which.job.empty() && options.which.ckpt_dir.empty() && !options.watch) {
        std::vector<std::string> jobs = running_jobs();
        if (jobs.size() != 1) {
            json all = json::array();
            for (const std::string& job : jobs)
                if (json one = status_of(job, options.diagnosis); one.is_object())
                    all.push_back(std::move(one));
            if (options.json) {
                for (json& one : all) one.erase("done");
                print_json(all);
            } else if (all.empty()) {
                std::printf("no job is running\n");
            }
            if (!options.json)
                for (const json& one : all) print_status(one, options.diagnosis);
            return 0;
        }
    }
    std::string job = find_job(options.which);
    json answer = status_of(job, options.diagnosis);
    if (!answer.is_object()) no_job(fmt::format("job {} is just ending", job));
    if (answer.contains("line") && !options.json) throw Error(answer.value("line", ""), ExitCode::timeout);
    if (options.watch) {
        if (!options.json) print_status(answer, options.diagnosis);
        std::fflush(stdout);
        watch(answer.value("ckpt_dir", ""), std::stoull(answer.value("job_number", "0"), nullptr, 16),
              options.json, [&] { return static_cast<bool>(connect_to(job)); });
    } else if (options.json) {
        print_json(answer);
    } else {
        print_status(answer, options.diagnosis);
    }
    return 0;
}

JobRepair repair_by_job(const std::string& ckpt_dir, std::optional<uint32_t> generation) {
    JobRepair repair;
    std::string job;
    try {
        job = find_job({"", ckpt_dir});
    } catch (const Error& error) {
        if (error.code() == ExitCode::no_job) return repair;
        throw;
    }
    root::ControlRequest request;
    request.verb = "repair";
    if (generation) request.generation = Generation(*generation);
    const json answer = ask(connect_or_fail(job), job, request, kRepairPatience, [&](const json& line) {
        (line.value("mended", false) ? repair.mended : repair.left)[line.value("generation", "")].push_back(
            line.value("text", ""));
    });
    if (!answer.value("ok", false)) fail("job {}: {}", job, answer.value("line", ""));
    return repair;
}

int cancel(const CancelOptions& options) {
    std::string job = find_job(options.which);
    root::ControlRequest request;
    request.verb = "cancel";
    request.checkpoint_only = options.checkpoint_only;
    json answer = ask(connect_or_fail(job), job, request, 30);
    int code = answer.value("code", 1);
    if (options.json)
        print_json(answer);
    else if (code == 0)
        std::printf("%s\n", answer.value("line", "").c_str());
    if (code != 0) std::fprintf(stderr, "fermata: error: %s\n", answer.value("line", "").c_str());
    return code;
}

}  // namespace fermata::cli
