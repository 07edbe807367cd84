#include "noded/ranks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/environment.h"
#include "base/error.h"
#include "base/is_ending.h"
#include "base/log.h"
#include "noded/cores.h"
#include "noded/library_links.h"
#include "tree/channel.h"
#include "tree/ranks.h"

extern char** environ;

namespace fermata::noded {
namespace {

// What another launcher, in whose rank Fermata itself may run, has said to that one.
constexpr std::string_view kOthers[] = {
    "PMI_", "PMI2_", "PMIX_RANK=", "PMIX_NAMESPACE=", "PMIX_SERVER_", "PMIX_GDS_", "PMIX_PTL_", "PMIX_BFROP_",
    "PMIX_SECURITY", "PMIX_HOSTNAME=", "PMIX_VERSION=", "HYDI_", "MPI_LOCAL", "OMPI_COMM_WORLD_",
    "OMPI_UNIVERSE_SIZE=",
    // and what is the daemon's alone
    "FERMATA_KEY=", "FERMATA_DAEMON=", "FERMATA_NODED=", "FERMATA_NODE_LOG="};

constexpr int kNeverRan = 127 << 8;  // as waitpid() would say it
constexpr int64_t kOthersMs = 1500;  // then the ranks that wait for a dead one hear of it

std::map<std::string, std::string> base_environment() {
    std::map<std::string, std::string> base;
    for (char** one = environ; one && *one; ++one) {
        std::string_view word = *one;
        size_t equals = word.find('=');
        if (equals == word.npos) continue;
        bool others = std::any_of(std::begin(kOthers), std::end(kOthers),
                                  [&](std::string_view prefix) { return word.starts_with(prefix); });
        if (!others) base[std::string(word.substr(0, equals))] = word.substr(equals + 1);
    }
    return base;
}

std::string how(int status) {
    return WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                               : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

pmi::Placement placement_of(const std::vector<wire::LaunchBlock>& said) {
    std::vector<pmi::Block> blocks;
    for (const wire::LaunchBlock& block : said)
        blocks.push_back({block.first_node, block.nodes, block.ranks_per_node});
    return pmi::Placement::of(blocks);
}

pmi::World world_of(const wire::Launch& launch, pmi::Placement placement, uint32_t node) {
    pmi::World world;
    world.epoch = launch.epoch;
    world.name = launch.world;
    world.placement = std::move(placement);
    world.node = node;
    for (const wire::LaunchPart& part : launch.parts) world.programs.push_back(part.ranks);
    world.universe = launch.universe;
    world.cores = static_cast<uint32_t>(own_cores().size());
    world.hosts = launch.hosts;
    return world;
}

}  // namespace

Ranks::Ranks(Place place, std::function<void(const wire::Message&)> up)
    : place_(std::move(place)), up_(std::move(up)) {
    up_(wire::Ready{place_.node, place_.name, static_cast<uint32_t>(own_cores().size())});
}

bool Ranks::from_root(const wire::Message& message) {
    if (auto* launch = std::get_if<wire::Launch>(&message)) {
        try {
            this->launch(*launch);
        } catch (const std::exception& error) {
            up_(wire::Fatal{fmt::format("error: on {}: {}", place_.name, error.what()), 1});
        }
    } else if (auto* signal = std::get_if<wire::Signal>(&message)) {
        this->signal(signal->number, signal->groups);
    } else if (auto* input = std::get_if<wire::Input>(&message)) {
        if (input_ && input->node == place_.node) input_->take(*input);
    } else if (auto* taken = std::get_if<wire::OutputTaken>(&message)) {
        if (taken->node == place_.node) window_ += taken->bytes;
        hand_up_output();
    } else {
        return (next_ && next_->from_root(message)) || (pmi_ && pmi_->from_root(message));
    }
    return true;
}

// ---- the start

void Ranks::launch(const wire::Launch& launch) {
    if (launch_) fail("the ranks of a daemon are started once");
    launch_ = launch;
    window_ = launch.window;
    const pmi::World world = world_of(launch, placement_of(launch.blocks), place_.node);
    if (world.placement.ranks_on(place_.node).empty()) {
        started_ = true;  // a copy may come
        return;
    }
    world.check();
    pmi_ = std::make_unique<PmiEnds>(world, launch.mpi, place_.directory);
    connect(*pmi_);
    for (const RankRange& range : world.placement.ranks_on(place_.node))
        range.each([this](Rank rank) {
            ranks_.push_back(std::make_unique<Started>(rank));
            if (rank == Rank(0)) input_.emplace();
        });
    start_ranks();
}

void Ranks::connect(PmiEnds& pmi) {
    pmi.up = up_;
    pmi.is_ending = [this](Rank whose) {
        for (auto& rank : ranks_)
            if (rank->rank == whose) return rank->status || is_ending(rank->child.pid);
        return false;
    };
    pmi.on_abort = [this](const pmi::Abort& abort) {
        up_(wire::Aborted{static_cast<int32_t>(abort.rank.number()), place_.name, abort.code, abort.text});
    };
    pmi.on_fault = [this](std::optional<Rank> whose, const std::string& why) {
        up_(wire::Warning{fmt::format("on {}: {}", place_.name, why)});
        for (auto& rank : ranks_)
            if (rank->child.process && !rank->status && (!whose || rank->rank == *whose))
                ::syscall(SYS_pidfd_send_signal, rank->child.process.get(), SIGKILL, nullptr, 0);
    };
}

void Ranks::start_ranks() {
    if (!launch_ || started_ || nobody_hears_ || !pmi_->ready()) return;
    started_ = true;
    std::vector<std::vector<int>> cores;
    if (launch_->bind) cores = own_cores();
    if (ranks_.size() > cores.size()) cores.assign(ranks_.size(), {});
    for (size_t i = 0; i < ranks_.size(); ++i)
        if (!at_start_of(*ranks_[i], [&](Started& rank) { start(rank, i, ranks_.size(), cores[i]); })) {
            for (size_t left = i; left < ranks_.size(); ++left) ranks_[left]->status = kNeverRan;
            break;
        }
    for (auto& rank : ranks_)
        if (rank->child.starting && !at_start_of(*rank, [this](Started& one) {
                const wire::LaunchPart& part = part_of(one.rank);
                confirm(one.child, part.words[0], part.directory);
            }))
            break;
}

// False: it failed, and the root has been told.
template <class Step>
bool Ranks::at_start_of(Started& rank, Step step) {
    try {
        step(rank);
        return true;
    } catch (const std::exception& error) {
        up_(wire::Fatal{
            fmt::format("error: rank {} on {}: {}", rank.rank.number(), place_.name, error.what()), 1});
        return false;
    }
}

void Ranks::start(Started& rank, size_t nth, size_t all, const std::vector<int>& processors) {
    auto [socket, variables] = pmi_->prepare(rank.rank);
    const wire::LaunchPart& part = part_of(rank.rank);
    Fd null = open_file("/dev/null", O_RDONLY | O_CLOEXEC);
    Fd output = rank.output.make(), error = rank.error.make();
    SpawnSpec spec;
    spec.words = part.words;
    spec.directory = part.directory;
    spec.environment = environment_of(rank.rank, nth, all, launch_->mpi, variables);
    spec.input = rank.rank == Rank(0) && input_ ? input_->ranks_end() : null.get();
    spec.output = output.get();
    spec.error = error.get();
    spec.kept = socket.get();
    spec.processors = processors;
    rank.child = spawn(spec);
    rank.group = rank.child.pid;
    if (rank.rank == Rank(0) && input_) input_->started();
}

uint32_t Ranks::size_of_job() const {
    uint32_t size = 0;
    for (const wire::LaunchPart& one : launch_->parts) size += one.ranks;
    return size;
}

const wire::LaunchPart& Ranks::part_of(Rank rank) const {
    uint32_t left = rank.number();
    for (const wire::LaunchPart& part : launch_->parts) {
        if (left < part.ranks) return part;
        left -= part.ranks;
    }
    fail("no program is named for rank {}", rank.number());
}

std::vector<std::string> Ranks::environment_of(Rank rank, size_t nth, size_t all, const std::string& mpi,
                                               const PmiEnds::Environment& pmi) const {
    std::map<std::string, std::string> variables = base_environment();
    for (const std::string& word : part_of(rank).environment) {
        size_t equals = word.find('=');
        if (equals != word.npos) variables[word.substr(0, equals)] = word.substr(equals + 1);
    }
    variables["FERMATA_LAUNCHER"] = "own";
    const uint32_t size = size_of_job();
    auto set = [&](const char* name, size_t value) { variables[name] = std::to_string(value); };
    // As programs and scripts know them of the site's launchers.
    if (mpi == "openmpi") {
        set("OMPI_COMM_WORLD_RANK", rank.number());
        set("OMPI_COMM_WORLD_SIZE", size);
        set("OMPI_COMM_WORLD_LOCAL_RANK", nth);
        set("OMPI_COMM_WORLD_LOCAL_SIZE", all);
        set("OMPI_COMM_WORLD_NODE_RANK", nth);
        set("OMPI_UNIVERSE_SIZE", launch_->universe);
    } else {
        set("MPI_LOCALRANKID", nth);
        set("MPI_LOCALNRANKS", all);
        variables.try_emplace("GFORTRAN_UNBUFFERED_PRECONNECTED", "y");
        // Else its reductions add up node by node, and a rank that goes on elsewhere changes the last bits.
        if (place_.ranks_move && launch_->hosts.size() > 1) variables.try_emplace("MPIR_CVAR_NOLOCAL", "1");
    }
    for (auto& [name, value] : pmi) variables[name] = value;
    std::vector<std::string> words;
    for (auto& [name, value] : variables) words.push_back(name + "=" + value);
    return words;
}

// ---- another world

void Ranks::renew(const wire::Renew& order) {
    if (!launch_ || !started_) fail("no ranks were started here");
    pmi::World world =
        world_of(*launch_, placement_of(order.blocks.empty() ? launch_->blocks : order.blocks), place_.node);
    world.epoch = order.world;
    world.name += fmt::format("-{}", order.world);
    size_t there = 0;
    for (const RankRange& range : world.placement.ranks_on(place_.node))
        range.each([&](Rank rank) { there += here(rank) != nullptr ? 1 : ranks_.size() + 1; });
    if (there != ranks_.size()) fail("other ranks are here than the order of a renewal names");
    renewal_.under_way = true;
    renewal_.mpi = order.mpi;
    renewal_.lower = order.lower;
    copies_wanted_ = tree::Ranks::of(order.copies).value_or(tree::Ranks());
    if (ranks_.empty()) return;
    world.check();
    next_ = std::make_unique<PmiEnds>(world, order.mpi, place_.directory);
    connect(*next_);
    // The world is not theirs yet: a failure there is no loss.
    next_->on_fault = [this](std::optional<Rank>, const std::string& why) { refuse(why); };
    next_->on_abort = [this](const pmi::Abort& abort) {
        refuse(fmt::format("rank {}: {}", abort.rank.number(), abort.text));
    };
    renewal_.order = order;
    invite_ranks();
}

void Ranks::invite_ranks() {
    if (!renewal_.order || !next_ || !next_->ready()) return;
    const wire::Renew order = *std::exchange(renewal_.order, {});
    try {
        const std::string links =
            order.reach.folder.empty() ? "" : link_library(order.reach, place_.directory);
        for (auto& one : ranks_) {
            const Rank rank = one->rank;
            wire::Renew own = order;
            own.copies.clear();
            own.blocks.clear();
            if (copies_wanted_.contains(static_cast<int32_t>(rank.number())) && !has_copy(rank))
                own.copies.push_back({static_cast<int32_t>(rank.number()), 1});
            own.environment =
                environment_of(rank, ranks_before(rank), ranks_.size(), order.mpi, next_->invite(rank));
            own.environment.insert(own.environment.end(), order.environment.begin(), order.environment.end());
            if (!links.empty())
                own.environment.push_back("LD_LIBRARY_PATH=" +
                                          in_front(links, value_in(own.environment, "LD_LIBRARY_PATH")));
            world(rank, std::move(own));
        }
    } catch (const std::exception& error) {
        refuse(error.what());
    }
}

void Ranks::renewed(bool goes_on) {
    renewal_.order.reset();
    renewal_.strangers = renewal_.strangers || (next_ && !goes_on);
    if (!goes_on) forget_unmade_copies();
    for (auto& rank : ranks_) rank->copy_unmade = false;
    if (goes_on && renewal_.under_way) {
        // Processes of it are there until they have handed over, and Open MPI ends one without its server.
        if (pmi_) earlier_worlds_.push_back(std::move(pmi_));
        pmi_ = std::move(next_);  // none where no rank is left
        launch_->mpi = renewal_.mpi;
        lower_ = renewal_.lower;
        if (pmi_) connect(*pmi_);
        for (auto& rank : ranks_) rank->moves = rank->known = true;
    }
    renewal_.under_way = false;
    next_.reset();
}

// Children that were to go on for a rank and were ended: nobody has told their numbers.
void Ranks::bury_strangers() {
    for (siginfo_t ended{}; ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid > 0;
         ended = {}) {
        const auto is = [&](const Child& child) { return child.pid == ended.si_pid; };
        const bool known =
            std::any_of(ranks_.begin(), ranks_.end(), [&](auto& rank) { return is(rank->child); }) ||
            std::any_of(left_.begin(), left_.end(), is) ||
            std::any_of(copies_.begin(), copies_.end(), [&](auto& one) { return is(one.second); }) ||
            std::any_of(remote_copies_.begin(), remote_copies_.end(),
                        [&](auto& one) { return is(one.second.child); }) ||
            std::any_of(earlier_worlds_.begin(), earlier_worlds_.end(),
                        [&](auto& one) { return one->is_helper(ended.si_pid); }) ||
            is_copys_helper(ended.si_pid) || (pmi_ && pmi_->is_helper(ended.si_pid)) ||
            (next_ && next_->is_helper(ended.si_pid));
        if (known || ::waitpid(ended.si_pid, nullptr, WNOHANG) != ended.si_pid) return;
    }
}

bool Ranks::moved(Rank who, pid_t from, pid_t pid) {
    for (auto& rank : ranks_) {
        if (rank->rank != who || rank->status || rank->child.pid != from) continue;
        Child now;
        now.pid = pid;
        now.process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
        siginfo_t none{};
        // Fails for who is nobody's child of ours.
        if (!now.process || ::waitid(P_PID, static_cast<id_t>(pid), &none, WEXITED | WNOHANG | WNOWAIT) != 0)
            return false;
        left_.push_back(std::exchange(rank->child, std::move(now)));
        rank->moves = false;
        return true;
    }
    return false;
}

// ---- one turn

void Ranks::add_to(std::vector<pollfd>& fds) {
    for (auto& rank : ranks_) {
        fds.push_back({rank->status ? -1 : rank->child.process.get(), POLLIN, 0});
        rank->output.add_to(fds);
        rank->error.add_to(fds);
    }
    polled_ = ranks_.size();  // a message may bring some before they are served
    if (polled_ > 0 && input_) input_->add_to(fds);
    if (pmi_) pmi_->add_to(fds);
    if (next_) next_->add_to(fds);
    for (PmiEnds* alone : copys_servers()) alone->add_to(fds);
}

void Ranks::serve(const std::vector<pollfd>& fds, size_t first) {
    size_t at = first;
    int64_t now = tree::now_ms();
    std::vector<short> ended(ranks_.size());
    for (size_t i = 0; i < polled_; ++i) {
        ended[i] = fds[at++].revents;
        ranks_[i]->output.serve(fds[at++].revents, now);
        ranks_[i]->error.serve(fds[at++].revents, now);
        refuse_parted(*ranks_[i]);
    }
    if (polled_ > 0 && input_)
        if (auto taken = input_->serve(fds[at++].revents)) up_(*taken);
    if (pmi_) pmi_->serve(fds);
    if (next_) next_->serve(fds);
    for (PmiEnds* alone : copys_servers()) alone->serve(fds);
    start_arrived();
    std::erase_if(left_, [this](const Child& old) {
        const bool over = ::waitpid(old.pid, nullptr, WNOHANG) != 0;
        if (over) left(old.pid);
        return over;
    });
    watch_copies();
    invite_ranks();
    if (renewal_.strangers) bury_strangers();
    for (size_t i = 0; i < ranks_.size(); ++i) watch(*ranks_[i], ended[i]);
    start_ranks();
    hand_up_output();
    hand_up_ends();
    tell_who_left();
}

int Ranks::rest(int otherwise) const {
    int64_t now = tree::now_ms();
    for (auto& rank : ranks_) {
        for (int rest : {rank->output.rest(now), rank->error.rest(now)})
            if (rest >= 0 && window_ >= OutputLines::kLongest) otherwise = std::min(otherwise, rest);
        if (rank->status && !rank->told) otherwise = std::min(otherwise, 100);
    }
    for (auto& [rank, copy] : remote_copies_) {
        if (copy.inflow && !copy.told) otherwise = std::min(otherwise, 10);
    }
    return otherwise;
}

void Ranks::watch(Started& rank, short revents) {
    int64_t now = tree::now_ms();
    int status = 0;
    // The rank has said where it goes before its process ended, and that may be read in the next turn only.
    if (revents && std::exchange(rank.moves, false)) return;
    if (revents && !rank.status && ::waitpid(rank.child.pid, &status, WNOHANG) == rank.child.pid) {
        if (promote(rank, status)) return;
        rank.status = status;
        rank.ended = now;
        if (rank.rank == Rank(0) && input_) input_->close();
        rank.leaves = goes_on_elsewhere(rank, status);
        if (!rank.leaves) {
            if (status != 0) end_copies();  // the job ends, and nobody's death is masked any more
            if (ended) ended(rank.rank);
        }
    }
    // A starter that ends with 0 may have left the program running: it has the starter's streams, as mpiexec
    // knows. (Who has died leaves only what is to be ended, too.)
    if (!rank.status || *rank.status == 0) return;
    rank.output.rank_has_died(rank.ended, now);
    rank.error.rank_has_died(rank.ended, now);
}

// In turns, so that no rank waits for one that says a lot.
void Ranks::hand_up_output() {
    for (size_t without = 0; without < ranks_.size(); ++turn_) {
        Started& rank = *ranks_[turn_ % ranks_.size()];
        bool some = hand_up_piece(rank, rank.output, false);
        some = hand_up_piece(rank, rank.error, true) || some;
        without = some ? 0 : without + 1;
    }
}

bool Ranks::hand_up_piece(Started& rank, RankStream& stream, bool error) {
    if (nobody_hears_) stream.drop();
    if (window_ < OutputLines::kLongest) return false;
    std::string piece = stream.take(tree::now_ms());
    if (piece.empty()) return false;
    window_ -= piece.size();
    up_(wire::Output{place_.node, static_cast<int32_t>(rank.rank.number()), error, std::move(piece)});
    return true;
}

void Ranks::hand_up_ends() {
    for (auto& rank : ranks_) {
        if (!rank->status || rank->forgotten || rank->leaves) continue;
        if (!rank->told) {
            bool more = *rank->status == 0 && rank->known && pmi_->has_socket(rank->rank);
            if (more || !rank->output.over() || !rank->error.over()) continue;
            rank->told = true;
            rank->stage = rank->known ? pmi_->stage(rank->rank) : wire::RankEnd::running;
            up_(wire::RankEnded{static_cast<int32_t>(rank->rank.number()), rank->child.pid, place_.name,
                                *rank->status, rank->stage});
        }
        // The root may end the others, who need not cry out before.
        const bool well = *rank->status == 0 && rank->stage != wire::RankEnd::running;
        if (!well && tree::now_ms() - rank->ended < kOthersMs) continue;
        rank->forgotten = true;
        if (rank->known) pmi_->ended(rank->rank, how(*rank->status));
    }
}

bool Ranks::all_live() const {
    return std::none_of(ranks_.begin(), ranks_.end(), [](auto& rank) {
        return !rank->told && (rank->status || is_ending(rank->child.pid));
    });
}

// ---- the end

void Ranks::signal(int number, bool groups) {
    for (auto& rank : ranks_) {
        if (rank->status || rank->child.pid <= 0) continue;
        // A process that has taken over in a renewal leads a group of its own; others of the first one go on.
        const pid_t now = ::getpgid(rank->child.pid);
        if (groups && now > 0 && now != rank->group) ::kill(-rank->group, number);
        if (!groups || ::kill(-(now > 0 ? now : rank->group), number) != 0)
            ::syscall(SYS_pidfd_send_signal, rank->child.process.get(), number, nullptr, 0);
    }
    if (number == SIGKILL || number == SIGTERM) end_copies();
}

void Ranks::root_is_gone() {
    nobody_hears_ = true;
    signal(SIGKILL, true);
}

bool Ranks::over() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [&](auto& rank) {
        return !started_ || (rank->status && (rank->told || nobody_hears_));
    });
}

}  // namespace fermata::noded
