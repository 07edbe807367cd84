// Losses: ranks and node daemons that are gone and should not be, and what the root does about it: whether it
// waits for the launcher, goes on without, or ends the job. No clock and no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fermata::root {

class Losses {
  public:
    // Facts that the decision depends on, besides what is gone.
    struct Facts {
        bool launcher_ends_job = true;  // when a rank dies
        bool can_go_on = false;         // there is a generation, and a supervisor that may restart from it
    };
    enum class Verdict {
        nothing,  // or nothing new
        say,      // the job goes on, and nobody can save it any more
        end,      // the root ends it
    };

    struct Rank {
        int rank = -1, pid = 0;
        std::string host;
        int32_t code = -1;  // of its exit, as a shell has it; -1: nobody knows
    };
    void rank_gone(const Rank& rank, int64_t now);
    // Its connection has been broken since `since`; it is given up `now`.
    void daemon_gone(const std::string& host, int pid, int64_t since, int64_t now);

    // The launcher says so itself, and ends the job.
    void launcher_ends(const std::string& line, int64_t now);

    bool any() const { return kind_ != Kind::none; }
    // The first of them: "rank 1 (pid 5 on a) is gone". Empty: none.
    const std::string& why() const { return why_; }
    int rank() const { return rank_; }  // -1: a daemon, or none
    const std::string& host() const { return host_; }
    int pid() const { return pid_; }
    bool daemon() const { return !lost_hosts_.empty(); }  // any
    // A daemon's loss was one of its node: ranks were killed, or the launcher has ended right after it.
    // `here`: the root's own node, which is there.
    void launcher_ended(const std::string& here, int64_t now);
    bool node() const { return daemon() && ranks_ended_; }
    // A rank has died, and none had left before by exit(0), whose launcher may have ended this one.
    bool killed() const { return kind_ == Kind::dead && !left_; }
    // Hosts that may be gone: of the daemons, and of the rank whose loss came first.
    std::vector<std::string> suspects() const;
    // For the end of the job.
    int32_t code() const { return code_ > 0 ? code_ : 1; }

    // `say` and `end` once each.
    Verdict verdict(const Facts& facts, int64_t now);
    // For the line that says it.
    std::string what_it_means(const Facts& facts, Verdict verdict) const;

    // Times that a launcher has to end the job itself; it may know more than we about a lost daemon.
    static constexpr int64_t kLauncherMs = 10'000, kLauncherOfNodeMs = 2'000;
    // A launcher that leaves the other ranks running may report a death and its exit code a moment after we
    // saw it.
    static constexpr int64_t kNewsMs = 200;

  private:
    enum class Kind {
        none,
        left,    // by exit(0), without MPI_Finalize: some launchers let the others go on
        dead,    // anything else that ends a process
        daemon,  // its ranks may go on
    };
    void note(Kind kind, const std::string& why, int rank, const std::string& host, int pid, int64_t now);
    void blame(const std::string& why, int rank, const std::string& host, int pid);
    Kind kind_ = Kind::none;
    bool left_ = false;  // any
    bool said_ = false, ended_ = false, launcher_ends_ = false, ranks_ended_ = false;
    std::string why_, host_;
    std::vector<std::string> lost_hosts_;
    int rank_ = -1, pid_ = 0;
    int32_t code_ = -1;
    int64_t at_ = 0;
};

}  // namespace fermata::root
