// Own is Fermata's own launcher: node daemons, which it starts itself, are the parents of the ranks and serve
// their MPI libraries. No mpiexec is needed, and the death of a rank leaves the others alone until the root
// decides.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/own/cause.h"
#include "launch/own/fan.h"
#include "launch/own/feed.h"
#include "launch/own/hosts.h"
#include "launch/own/library_below.h"
#include "launch/own/outlet.h"
#include "launch/own/placing.h"
#include "launch/own/starters.h"
#include "launch/own/words.h"
#include "launch/plan.h"
#include "launch/terminal_input.h"
#include "pmi/fence.h"

namespace fermata::launch::own {

class Own : public Launcher {
  public:
    // Throws Error (exit code 2) when it does not understand what was asked for.
    Own(LaunchPlan plan, std::optional<TerminalInput> input);

    void start() override;
    std::optional<int> ended() override;
    void ask_to_end() override;
    void kill() override;
    void hand_on(int signal, bool to_all) override;
    bool ends_when_a_rank_dies() const override { return false; }
    std::string missing() const override;
    std::vector<std::string> unreached() const override;
    void reach(Daemons& daemons) override { daemons_ = &daemons; }
    void stand_by() override { stands_by_ = true; }
    void take_up(std::optional<TerminalInput> input) override;
    bool renews() const override { return true; }
    void plan_renewal(const Renewal& wanted) override { library_.plan(wanted); }
    wire::Renew renew(uint32_t world) override;
    void renewed() override;
    void rank_moved(Rank rank, int daemon) override;
    bool heard(const wire::Message& message) override;
    void lost(int daemon) override;
    void add_to(std::vector<pollfd>& fds) override;
    void serve(const std::vector<pollfd>& fds, size_t first) override;

  private:
    struct Node {
        std::string name;
        int daemon = -1;  // as the root calls it; -1: it has not come
        bool needed = true;
        bool lost = false;
        uint32_t ranks = 0;
        uint32_t running = 0;  // of those, ranks whose end has not been told
    };

    void choose_hosts();
    void leave_out();
    void start_daemons();
    void start_below(uint32_t node);
    void not_started(const wire::NotStarted& said);
    void ready(const wire::Ready& said);
    void place_ranks();
    void launch();
    wire::LaunchPart part_on_wire(const Part& part, const Words& words, uint32_t ranks) const;
    void expect_world(uint32_t world);
    std::vector<wire::LaunchBlock> blocks_on_wire() const;
    void fence(const wire::Fence& part);
    void to_node_of(uint32_t node, const wire::Message& message);
    void rank_ended(const wire::RankEnded& said);
    void out_of_fences(Rank rank, const std::string& line);
    void failed(int code, const std::string& line);
    void hand_out(Outlet& outlet);

    const LaunchPlan plan_;
    std::vector<Part> parts_;
    std::vector<Words> words_;  // of each part
    Wishes wishes_;
    bool in_allocation_ = false, named_ = false;  // Slurm's, with the names of its nodes
    bool fewer_ = false;                          // hosts are used than there are
    LibraryBelow library_;
    Daemons* daemons_ = nullptr;
    Starters starters_;
    Feed feed_;
    Outlet output_{1}, error_{2};

    std::vector<Node> nodes_;
    Fan fan_;  // of the nodes of other hosts
    std::optional<pmi::Placement> placement_;
    bool moved_ = false;                          // it is not that of the launch any more
    std::map<uint32_t, pmi::FenceMerge> fences_;  // by world
    bool launched_ = false;
    bool stands_by_ = false;
    int64_t kill_at_ = 0;        // ms: what runs then is killed; 0 = nothing is to end
    bool ending_ = false;        // ranks that end now do so because they were told to
    std::optional<int> failed_;  // exit code of the first failure
    Cause cause_;
    bool over_ = false;
};

}  // namespace fermata::launch::own
