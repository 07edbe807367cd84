// Ranks are the processes of a job that this node daemon has started itself: their start, output, input,
// signals and ends, told to the root by the messages of wire/launch.h. Under a site's launcher there are
// none.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "noded/input_pipe.h"
#include "noded/pmi_ends.h"
#include "noded/rank_stream.h"
#include "noded/spawn.h"
#include "transfer/streams.h"
#include "tree/ranks.h"
#include "wire/message.h"

namespace fermata::noded {

class Ranks {
  public:
    struct Place {
        uint32_t node = 0;        // this daemon's number in the launcher's list
        std::string name;         // of the node, for people
        std::string directory;    // this daemon's own
        bool ranks_move = false;  // their copies on other nodes may take their places
    };
    Ranks(Place place, std::function<void(const wire::Message&)> up);

    // False: the message is not for who starts ranks.
    bool from_root(const wire::Message& message);
    void add_to(std::vector<pollfd>& fds);
    void serve(const std::vector<pollfd>& fds, size_t first);
    // ms that poll may take, at most `otherwise`.
    int rest(int otherwise) const;

    // A new world for the ranks that are here: what follows is each one's order for it, one call of `world`
    // for each rank, once its server is ready. It takes the place of the old one with renewed(true).
    void renew(const wire::Renew& order);
    void renewed(bool goes_on);
    std::function<void(Rank, wire::Renew)> world;
    // Called when there will be no such world, with the reason.
    std::function<void(const std::string& why)> refuse;
    // The rank is process `pid` now. False: not a child of this daemon, or `from` is not the rank any more.
    bool moved(Rank rank, pid_t from, pid_t pid);
    // A process that its rank has left has ended.
    std::function<void(pid_t)> left;

    // ---- copies (rank_copies.cpp): processes that ranks have left, and that follow them
    // The rank stands: what comes behind this its copy writes, too.
    void stands(Rank rank);
    // False: not a process that this rank has left.
    bool stays(Rank rank, pid_t pid);
    bool has_copy(Rank rank) const { return copies_.count(rank) > 0; }
    // The rank gets none in this renewal.
    void gets_no_copy(Rank rank);
    // Nobody wants these any more, though their ranks go on.
    void end_copies(const tree::Ranks& of);
    // A copy that has its rank's place stands: its descriptors with what it has written.
    void copy_wrote(Rank rank, pid_t pid, int output, int error);
    // Nobody needs them any more.
    void end_copies();
    // The rank was killed, and its copy, this process, has its place; how it was killed.
    std::function<void(Rank, pid_t, const std::string& how)> promoted;
    // `how` it ended; "": since all are to end.
    std::function<void(Rank, pid_t, const std::string& how)> copy_ended;
    // A rank has ended that has no copy.
    std::function<void(Rank)> ended;

    // ---- copies on other nodes (copies_elsewhere.cpp)
    // A copy of a rank of another node, a process of this daemon.
    struct Elsewhere {
        Child child;
        RankStream output, error;        // whose ends it has for when it gets the place
        std::unique_ptr<PmiEnds> world;  // in which it is alone; may be null
        wire::StartCopy order;
        std::unique_ptr<transfer::Inflow> inflow;  // of its rank's stream; null: it does not follow yet
        bool told = false;                         // that it is a copy
    };
    // Starts one, by the image in this directory. Throws Error.
    void start_copy(const wire::StartCopy& order, const std::string& directory);
    // Fills this memory with the stream, by which it follows. False: it is none that was started.
    bool takes_in(Rank rank, std::shared_ptr<transfer::StreamMemory> memory, const wire::Key& key,
                  int64_t silent_ms);
    // One that has all its rank had written when it began to follow, and counts as a copy from now on. Each
    // once.
    std::optional<std::pair<Rank, pid_t>> has_caught_up();
    // A process that was started as a copy, and has not said Stays: of which rank.
    std::optional<Rank> arrives(pid_t pid) const;
    // Gives it the place of its rank, which was on another node: its process; none: there is no such copy.
    std::optional<pid_t> take_place(const wire::TakePlace& order);
    // The streams of ranks here to their copies on other nodes are carried by somebody else.
    struct Streams {
        std::function<bool(Rank)> copy_is_elsewhere;
        std::function<bool(Rank)> stream_has_ended;
        // The copy is there no more, and nobody needs the stream.
        std::function<void(Rank)> copy_is_gone;
    } streams;
    // A rank here was killed whose copy is on another node, all of its output is on its way, and its stream.
    std::function<void(Rank, pid_t, int status)> leader_died;
    // Here or elsewhere.
    bool somebody_follows(Rank rank) const;
    // Its output waits for what this stream has carried.
    void stream_begins(Rank rank, const std::shared_ptr<transfer::StreamMemory>& stream);
    // How many bytes of output and error a rank that stands has written, and whether so many are on their way
    // to the root. Counted from where the process that plays it began, or was made as a copy.
    struct Written {
        uint64_t output = 0, error = 0;
    };
    Written written_by(Rank rank);
    bool is_on_its_way(Rank rank, const Written& written) const;

    // No rank here is on its way out, or has ended and the root does not know.
    bool all_live() const;

    void signal(int number, bool groups);
    // Nobody hears of them any more.
    void root_is_gone();
    // Nothing runs, and all that is to be said of it has been.
    bool over() const;
    uint32_t size_of_job() const;

  private:
    struct Started {
        explicit Started(Rank who) : rank(who) {}
        Rank rank;
        Child child;
        pid_t group = 0;           // its processes, over all lives
        bool parted = false;       // from its copy, and the root knows
        bool copy_unmade = false;  // stands in a renewal that makes a copy of it
        bool moves = false;        // to another process, of which it has not told yet
        bool leaves = false;       // has died, and goes on on another node
        bool known = true;         // to the newest world's server: its library is not of an earlier one
        RankStream output, error;
        std::optional<int> status;
        int64_t ended = 0;  // ms
        bool told = false;  // the root knows of its end
        wire::RankEnd stage = wire::RankEnd::silent;
        bool forgotten = false;  // the server of the MPI libraries knows of it, too
    };

    void launch(const wire::Launch& launch);
    void start_ranks();
    template <class Step>
    bool at_start_of(Started& rank, Step step);
    void start(Started& rank, size_t nth, size_t all, const std::vector<int>& processors);
    std::vector<std::string> environment_of(Rank rank, size_t nth, size_t all, const std::string& mpi,
                                            const PmiEnds::Environment& pmi) const;
    const wire::LaunchPart& part_of(Rank rank) const;
    void connect(PmiEnds& pmi);
    void invite_ranks();
    void bury_strangers();
    void watch(Started& rank, short revents);
    bool promote(Started& rank, int status);
    bool goes_on_elsewhere(const Started& rank, int status) const;
    void tell_who_left();
    void start_arrived();
    std::vector<PmiEnds*> copys_servers() const;
    bool is_copys_helper(pid_t pid) const;
    Started* here(Rank rank) const;
    size_t ranks_before(Rank rank) const;
    void forget_unmade_copies();
    void refuse_parted(Started& rank);
    void watch_copies();
    void hand_up_output();
    bool hand_up_piece(Started& rank, RankStream& stream, bool error);
    void hand_up_ends();

    const Place place_;
    const std::function<void(const wire::Message&)> up_;
    std::optional<wire::Launch> launch_;
    std::unique_ptr<PmiEnds> pmi_;
    std::unique_ptr<PmiEnds> next_;            // of the world that ranks are about to come to
    std::vector<Child> left_;                  // processes that ranks have left
    std::map<Rank, Child> copies_;             // ... and that stay as their copies
    std::map<Rank, Elsewhere> remote_copies_;  // of ranks of other nodes
    struct Arrival {
        wire::StartCopy order;
        std::string directory;
        std::unique_ptr<PmiEnds> world;
    };
    std::map<Rank, Arrival> arrivals_;  // no process yet: their libraries' servers are being made
    std::string lower_;                 // the program of lower halves of the newest world; "" = the launch's
    // Libraries of copies, of those that have got places, and of processes that hand over: Open MPI ends them
    // (exit code 195) without.
    std::vector<std::unique_ptr<PmiEnds>> earlier_worlds_;
    tree::Ranks copies_wanted_;    // in the newest renewal
    tree::Ranks copies_unwanted_;  // being ended
    bool copies_end_ = false;      // those that come, too
    struct {
        bool under_way = false;            // also where no rank is
        std::string mpi, lower;            // the library there, the program of lower halves
        std::optional<wire::Renew> order;  // ranks have not been invited yet
        bool strangers = false;            // one was given up: its children may be there
    } renewal_;
    std::optional<InputPipe> input_;
    std::vector<std::unique_ptr<Started>> ranks_;
    uint64_t window_ = 0;  // bytes of output that may be sent
    size_t turn_ = 0;      // whose output is next
    size_t polled_ = 0;    // ranks that are polled
    bool started_ = false;
    bool nobody_hears_ = false;
};

}  // namespace fermata::noded
