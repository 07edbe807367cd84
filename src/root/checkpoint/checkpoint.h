// Checkpoint is the checkpoint in progress, or the newest one: the list of its phases, what is waited for in
// each, and the way back when one fails. It leads the collective clock above the ranks. All that it knows of
// the job is Job.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clock/tree.h"
#include "keeping/keeper.h"
#include "root/checkpoint/job.h"
#include "root/plan/request.h"
#include "root/plan/settings.h"
#include "store/parts.h"
#include "store/store.h"
#include "tree/tally.h"

namespace fermata::root {

class Checkpoint {
  public:
    Checkpoint(Job& job, const Settings& settings, tree::Tally& tally, store::Store& store,
               keeping::Keeper& keeper)
        : job_(job), settings_(settings), tally_(tally), store_(store), keeper_(keeper) {}

    // Takes one, and serves the job meanwhile. `expected`: bytes that it may have; 0 = nobody knows.
    Outcome take(const Request& request, store::LevelName level, uint64_t expected);

    bool in_progress() const { return attempt_.in_progress; }
    // The job ends with the one in progress.
    bool stops() const { return attempt_.in_progress && attempt_.stops; }
    // The phase it is in; "" = none is in progress.
    const std::string& phase() const { return attempt_.phase; }
    store::LevelName level() const { return attempt_.level; }
    uint32_t count() const { return good_; }  // of those that have come to their end
    Generation newest() const { return newest_; }

    // ---- handlers note what they hear

    // Somebody does not want it any more.
    void cancel() { attempt_.cancelled = attempt_.in_progress; }
    // The tree has changed: messages of the clock may be lost, which are not repeated.
    void disturbed(const std::string& why) { attempt_.disturbed = why; }
    // A daemon of this node has answered.
    void heard_from(const std::string& host) { attempt_.last_heard = host; }
    // A message of the clock, from the subtree of this child of the root.
    void clock_from(int child, const wire::Clock& message, const std::string& host);
    // Sends what the clock has to say; once every few milliseconds.
    void pump_clock();
    // Daemons right below the root in whose subtrees ranks have not reached the safe state.
    std::vector<int> children_not_safe() const;

  private:
    struct Abandoned {
        std::string why;
        ExitCode code = ExitCode::failed;
    };
    struct Attempt {
        uint32_t epoch = 0;
        bool in_progress = false;
        bool begun = false;  // ranks have heard of it, and it can be taken back
        bool cancelled = false;
        std::string disturbed;  // "" = the tree has not changed since it began
        bool renews = false;    // nobody is saved
        bool stops = false;     // the job ends with it
        tree::Ranks copied;     // for their copies on other nodes: nothing of it is kept; none: it is
        int client = -1;        // who asked and hears of each phase
        uint64_t expected = 0;  // bytes
        std::string phase;      // empty = none
        int64_t phase_start_us = 0;
        double start = 0, standing = 0, going_on = 0;  // s; going_on: 0 = the ranks stand until the commit
        std::string last_heard;                        // host of the node daemon whose answer came last
        enum class Slow { not_yet, asked, known } slow = Slow::not_yet;  // who waits where in this phase
        std::string waits;
        Outcome outcome;
        store::LevelName level = store::LevelName::files;
        store::GenerationInfo generation;
        store::Manifest saved;  // once it is committed
        store::Parts parts;     // files of several images
        tree::BlockTimes times;
    };
    void phases(const Request& request);
    void wait_for_start(const Request& request, double end);
    void begin(double end);
    void come_to_safe_state(double end);
    void tell_ranks();
    void stand_anywhere(double end);
    void renew_anywhere(const Request& request, double end);
    void stand_to_save(double end);
    void renew(const Request& request, double end);
    void copy_elsewhere(const Request& request, double end);
    void save_for_copies(const Request& request, double end);
    void start_copies(const Request& request, double end);
    void make_room(double end);
    void freeze(double end);
    void drain(double end);
    void save(const Request& request, double end);
    void written_behind(double end);
    void give_up_on_save_error() const;
    std::vector<uint32_t> daemon_of_ranks() const;
    std::vector<wire::Bytes> shared_of_ranks() const;
    std::vector<std::string> nodes_of_ranks() const;
    void lay_out_parts();
    void commit();
    store::Manifest manifest() const;
    void resume(bool stop);
    void conclude();
    void note_times();
    journal::Measured what_was_measured(double ended) const;
    void take_back(const std::string& why);

    void ask(const wire::Message& question);
    void enter(const char* phase);
    void leave_phase();
    void ask_who_holds_it_up();
    void until(const std::function<bool()>& done, double end, const char* what);
    void give_up_if_it_cannot_succeed();

    Job& job_;
    const Settings& settings_;
    tree::Tally& tally_;
    store::Store& store_;
    keeping::Keeper& keeper_;
    Attempt attempt_;
    std::unique_ptr<clock::Root> clock_;  // of the one in progress
    std::map<int, size_t> clock_child_;   // daemon right below the root -> child of clock_
    uint32_t good_ = 0;
    Generation newest_;  // that this life has committed
};

}  // namespace fermata::root
