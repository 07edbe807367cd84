// Start is the start of a job, or its restart, as the root sees it: which ranks have come, which of its
// phases it is in, and for whom it waits. The phases are a list (start.cpp); `fermata status` shows the first
// one that is not over.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/generation.h"
#include "tree/roster.h"
#include "tree/tally.h"
#include "tree/tree.h"

namespace fermata::root {

class Start {
  public:
    // `expected` ranks; 0: as many as the launcher starts.
    Start(int expected, Generation restored, const tree::Tree& tree, const tree::Tally& tally)
        : expected_(expected), restored_(restored), tree_(tree), tally_(tally) {}

    // Only now it is known which of several generations it is.
    void restored_from(Generation generation) { restored_ = generation; }

    // Ranks have come: "", or why the job cannot be: one line.
    std::string joined(int node, const wire::Group& group);
    // A rank runs a starter (a shell, env) and not yet its MPI program.
    void in_starter(const wire::InStarter& said, int64_t now);

    tree::Roster& roster() { return roster_; }
    const tree::Roster& roster() const { return roster_; }
    uint32_t ranks() const { return static_cast<uint32_t>(roster_.size()); }
    // Nothing but Go is missing; at a first start not even that.
    bool complete() const;

    // "launcher", "ranks", "load" …
    const char* phase() const;
    // Restart: the phases that ranks say, once all have said one.
    std::optional<wire::Phase> furthest_behind() const;
    // Why the job is not running yet, in one line.
    std::string who_is_missing() const;
    bool some_in_starters() const { return !starters_.empty(); }
    std::string who_is_in_a_starter() const;
    int64_t starters_since() const { return starters_since_; }

    // A node daemon has ended, as the line says: unless the launcher ends soon, too, the job cannot run.
    void daemon_gone(const std::string& line, int64_t now);
    // The line, when the launcher had its time. "" = it may still run.
    std::string given_up(int64_t now) const;

    // A rank is another process now, perhaps with another library.
    void moved(const wire::Moved& said);

    const std::string& mpi() const { return mpi_; }
    const std::string& mpi_version() const { return mpi_version_; }
    // One that waits for the program: it may go on after that. "" = none.
    const std::string& waiting_starter() const { return waiting_starter_; }

  private:
    struct Phase {
        const char* name;
        bool (*over)(const Start&);
    };
    template <wire::RestartPhase phase>
    static bool all_beyond(const Start& start);
    static const Phase kFirst[], kAgain[];

    struct Starter {
        int pid;
        std::string program;
    };
    const int expected_;
    Generation restored_;
    const tree::Tree& tree_;
    const tree::Tally& tally_;
    tree::Roster roster_;
    std::string mpi_, mpi_version_;
    std::map<int, Starter> starters_;
    std::string waiting_starter_;
    int64_t starters_since_ = 0;  // ms; the newest change of starters_
    std::string gone_;            // of the first node daemon
    int64_t gone_at_ = 0;
};

}  // namespace fermata::root
