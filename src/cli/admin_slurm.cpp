// Settings of Slurm as `fermata doctor --admin` reads them: from slurmctld by scontrol, else from slurm.conf.
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/admin.h"
#include "files/folder.h"
#include "launch/programs.h"
#include "launch/slurm.h"
#include "launch/slurm_settings.h"
#include "launch/srun.h"

namespace fermata::cli {
namespace {

using launch::SlurmSettings;

constexpr int64_t kPatienceMs = 15'000;  // scontrol's own, with a slurmctld that does not answer, is less
constexpr int kMostIncludes = 4;         // below each other
constexpr const char* kPlugin = "fermata_spank.so";
constexpr const char* kEpilog = "epilog.sh";

std::string text_of(const std::string& path) {
    try {
        return read_file(path);
    } catch (const Error&) {
        return {};
    }
}

// The file, and those that it includes.
std::string with_includes(const std::string& path, int depth) {
    std::string text;
    std::istringstream in(text_of(path));
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string word, file;
        words >> word >> file;
        std::transform(word.begin(), word.end(), word.begin(),
                       [](unsigned char c) { return std::tolower(c); });
        if (word == "include" && !file.empty() && depth > 0)
            text +=
                with_includes(file[0] == '/' ? file : files::split_path(path).first + "/" + file, depth - 1);
        else
            text += line + "\n";
    }
    return text;
}

struct Slurm {
    SlurmSettings settings;
    std::string conf;  // slurm.conf; "" = not found
    bool asked = false;
};

std::string find_conf() {
    if (const char* given = std::getenv("SLURM_CONF"); given && *given) return given;
    for (const char* path : {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                             "/run/slurm/conf/slurm.conf", "/var/spool/slurmd/conf-cache/slurm.conf"})
        if (::access(path, F_OK) == 0) return path;
    return {};
}

Slurm find_slurm() {
    Slurm slurm;
    slurm.conf = find_conf();
    const std::string scontrol = launch::in_path("scontrol");
    launch::Answer said;
    if (!scontrol.empty() && !slurm.conf.empty() && ::access(slurm.conf.c_str(), R_OK) == 0)
        said = launch::ask(scontrol, {"show", "config"}, kPatienceMs, launch::Errors::silent);
    slurm.asked = said.well && !SlurmSettings::in(said.text).empty();
    // The first of a name counts; partitions are in the file alone.
    slurm.settings =
        SlurmSettings::in((slurm.asked ? said.text + "\n" : "") + with_includes(slurm.conf, kMostIncludes));
    return slurm;
}

Finding conf(const Slurm& slurm) {
    if (slurm.conf.empty())
        return {"slurm", true, false,
                "no slurm.conf here (SLURM_CONF, /etc/slurm): its settings are not looked at"};
    if (slurm.settings.empty())
        return {"slurm", false, false,
                fmt::format("{} cannot be read or is empty: srun does not work for this user, and its "
                            "settings are not looked at",
                            slurm.conf)};
    return {"slurm", true, false,
            slurm.asked ? "as slurmctld says (scontrol), and " + slurm.conf
                        : slurm.conf + "; slurmctld does not answer scontrol, or there is none"};
}

Finding tracking(const SlurmSettings& settings) {
    const std::string type = settings.value("ProctrackType");
    const bool good = !type.ends_with("/pgid");
    return {"ProctrackType", good, false,
            fmt::format(
                "{}{}", type.empty() ? "proctrack/cgroup" : type,
                !good ? ": ranks that have a process group of their own outlive their job: proctrack/cgroup"
                : type.ends_with("/linuxproc")
                    ? ": node daemons of a killed step stay until the job's next one or its end: "
                      "proctrack/cgroup ends them"
                    : "")};
}

// Tells the time between the first signal and SIGKILL.
Finding time_to_save(const SlurmSettings& settings) {
    constexpr double kLittle = 30;
    const double wait = settings.number("KillWait", 30);
    return {"KillWait", wait >= kLittle, false,
            fmt::format("{:.0f} s from SIGTERM to SIGKILL: so long a checkpoint may take that scontrol "
                        "requeue, scancel or a limit "
                        "asks for{}",
                        wait, wait >= kLittle ? "" : ": more where jobs are large (KillWait=120)")};
}

Finding preemption(const SlurmSettings& settings) {
    const std::string mode = settings.value("PreemptMode");
    std::vector<std::string> modes = settings.of_partitions("PreemptMode"),
                             graces = settings.of_partitions("GraceTime");
    modes.insert(modes.begin(), mode.empty() ? "OFF" : mode);
    if (settings.value("PreemptType").empty() || settings.has("PreemptType", "preempt/none"))
        return {"preemption", true, false, "none"};
    bool cancels = false, requeues = false, grace = false;
    for (std::string& one : modes) {
        std::transform(one.begin(), one.end(), one.begin(), [](unsigned char c) { return std::toupper(c); });
        cancels = cancels || one.find("CANCEL") != one.npos;
        requeues = requeues || one.find("REQUEUE") != one.npos;
    }
    for (const std::string& one : graces) grace = grace || (one != "0" && !one.empty());
    std::string text = fmt::format("PreemptMode={}", fmt::join(modes, ", of a partition "));
    if (cancels)
        text += ": CANCEL ends jobs that could go on: REQUEUE brings them back, from their newest checkpoint";
    if (requeues && !grace)
        text += fmt::format(
            ": without a GraceTime of the partition {:.0f} s (KillWait) are left for the last checkpoint",
            settings.number("KillWait", 30));
    if (requeues && !settings.has("SlurmctldParameters", "preempt_send_user_signal"))
        text += "; SlurmctldParameters=preempt_send_user_signal lets `--signal=B:` warn job scripts";
    return {"preemption", !cancels, false, text};
}

Finding requeueing(const SlurmSettings& settings) {
    const bool may = settings.number("JobRequeue", 1) != 0;
    const bool by_code = settings.has("RequeueExit", "85");
    return {
        "requeue", may, false,
        fmt::format("{}; {}{}",
                    may ? "jobs come back after a node has failed or they were preempted (JobRequeue=1)"
                        : "JobRequeue=0: jobs come back only where `sbatch --requeue` says so",
                    by_code ? "RequeueExit has 85: a job that `fermata run` has stopped comes back by itself"
                            : "RequeueExit=85 would bring back by itself what `fermata run` has stopped at "
                              "the time limit",
                    settings.value("AuthInfo").find("cred_expire") != std::string::npos
                        ? ""
                        : "; a requeued job waits 120 s (AuthInfo=cred_expire=N)")};
}

Finding dead_nodes(const SlurmSettings& settings) {
    const double timeout = settings.number("SlurmdTimeout", 300);
    return {"SlurmdTimeout", timeout > 0, false,
            timeout > 0 ? fmt::format("{:.0f} s until Slurm gives a dead node up; Fermata goes on without it "
                                      "at once, where the job has "
                                      "--no-kill and --max-restarts",
                                      timeout)
                        : "0: Slurm never gives a dead node up, and a job that has lost its first one is "
                          "never brought back: 300"};
}

Finding unkillable(const SlurmSettings& settings) {
    constexpr double kLittle = 60;
    const double timeout = settings.number("UnkillableStepTimeout", 60);
    return {
        "UnkillableStep", timeout >= kLittle, false,
        fmt::format("{:.0f} s until a node is taken out of service because processes do not end{}", timeout,
                    timeout >= kLittle
                        ? ""
                        : ": a rank that writes its image to a slow file system cannot be killed before that "
                          "answers: UnkillableStepTimeout=180")};
}

Finding address_space(const SlurmSettings& settings) {
    const bool none = settings.number("VSizeFactor", 0) == 0;
    return {"VSizeFactor", none, true,
            none ? "0: no limit on addresses"
                 : fmt::format("{}: a limit on addresses, of which each rank reserves nearly all (and uses "
                               "none): jobs are refused: 0; "
                               "memory is limited by TaskPlugin=task/cgroup",
                               settings.value("VSizeFactor"))};
}

Finding containers(const SlurmSettings& settings) {
    const bool own_tmp = settings.has("JobContainerType", "job_container/tmpfs");
    return {"JobContainer", !own_tmp, false,
            own_tmp ? "job_container/tmpfs: each job has a /tmp of its own, in which `fermata checkpoint` "
                      "and `status` of other "
                      "sessions do not find it: FERMATA_RUN_DIR names a place outside of it, or use srun "
                      "--overlap --jobid=N fermata …"
                    : "jobs and sessions of a node see the same /tmp"};
}

void plugins(const SlurmSettings& settings, std::vector<Finding>& all) {
    const std::string srun = launch::in_path("srun"), standard = settings.value("MpiDefault");
    if (srun.empty()) {
        all.push_back(
            {"srun", false, false,
             "not in PATH: in jobs the library's mpiexec starts the ranks, by ssh or by Slurm's own means"});
        return;
    }
    const std::vector<std::string> there = launch::mpi_plugins(srun);
    for (const auto& [mpi, says] : {std::pair{"openmpi", "Open MPI"}, {"mpich", "MPICH and Intel MPI"}}) {
        const std::string plugin = launch::plugin_for(mpi, there);
        all.push_back({fmt::format("srun, {}", mpi), !plugin.empty(), false,
                       plugin.empty() ? fmt::format("no plugin for {} among those of `srun --mpi=list` ({}): "
                                                    "their jobs are started by mpiexec: "
                                                    "install Slurm with {}",
                                                    says, fmt::join(there, ", "),
                                                    mpi == std::string_view("openmpi") ? "PMIx" : "PMI-2")
                                      : fmt::format("--mpi={}, said by Fermata itself (MpiDefault={})",
                                                    plugin, standard.empty() ? "none" : standard)});
    }
}

Finding plugin(const Slurm& slurm) {
    std::string path = slurm.settings.value("PlugStackConfig");
    if (path.empty()) path = files::split_path(slurm.conf).first + "/plugstack.conf";
    std::istringstream in(with_includes(path, kMostIncludes));
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string kind, file;
        words >> kind >> file;
        if (kind.starts_with("#") || !file.ends_with(kPlugin)) continue;
        const bool there = file[0] != '/' || ::access(file.c_str(), R_OK) == 0;
        // A plugin that was compiled for another release of Slurm is left out without an error when it is
        // optional.
        const std::string srun = launch::in_path("srun");
        const bool taken =
            srun.empty() || launch::output_of(srun, {"--help"}).find("--fermata=") != std::string::npos;
        return {
            "srun --fermata", there && taken && kind != "required", false,
            !there ? fmt::format("{} names {}, which is not on this node: srun has no --fermata", path, file)
            : !taken ? fmt::format("{} has {}, and srun does not take it: compile it with this Slurm's "
                                   "header (docs/install.md)",
                                   path, file)
            : kind == "required"
                ? fmt::format("{} requires it: srun and sbatch fail on a node without that file: `optional`",
                              path)
                : fmt::format("{} has {}", path, file)};
    }
    return {"srun --fermata", true, false,
            fmt::format("not there, jobs use `fermata run`; with it: `optional …/lib/fermata/slurm/{}` in {}",
                        kPlugin, path)};
}

Finding epilog(const SlurmSettings& settings) {
    const std::string files = settings.value("Epilog");
    std::istringstream text(text_of(files));
    bool ours = files.ends_with("/fermata/slurm/epilog.sh");
    for (std::string line; std::getline(text, line);)
        ours = ours || (!line.starts_with("#") && line.find("doctor --sweep") != std::string::npos);
    return {"Epilog", ours, false,
            ours ? files + " removes what killed jobs have left"
                 : fmt::format("{}: what a killed job leaves here (memory!) waits for that user's next one: "
                               "Epilog=…/lib/fermata/slurm/{}",
                               files.empty() ? "none" : files, kEpilog)};
}

}  // namespace

std::vector<Finding> slurm_around() {
    const Slurm slurm = find_slurm();
    std::vector<Finding> all = {conf(slurm)};
    if (slurm.settings.empty()) return all;
    const SlurmSettings& settings = slurm.settings;
    for (auto* look :
         {tracking, time_to_save, preemption, requeueing, dead_nodes, unkillable, address_space, containers})
        all.push_back(look(settings));
    plugins(settings, all);
    all.push_back(plugin(slurm));
    all.push_back(epilog(settings));
    return all;
}

}  // namespace fermata::cli
