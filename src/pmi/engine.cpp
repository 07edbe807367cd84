#include "pmi/engine.h"

#include <algorithm>

#include "base/error.h"
#include "base/invariant.h"
#include "pmi/command.h"

namespace fermata::pmi {
namespace {

// Limits of lengths that ranks are told. The lines of MPICH's own client end at 1,024 bytes.
constexpr size_t kLongestName = 256, kLongestKey = 64, kLongestValue = 1024;
constexpr size_t kLongestLine = 16 << 10;
// The values of one rank's start are no more than some kilobytes.
constexpr size_t kMostOfValues = 256 << 20;
constexpr std::string_view kMappingKey = "PMI_process_mapping";

}  // namespace

Engine::Engine(World world) : world_(std::move(world)) {
    world_.check();
    always(kLongestValue <= kLongestLine && kLongestKey < kLongestLine, "values that no line holds");
    for (const RankRange& range : world_.placement.ranks_on(world_.node))
        range.each([this](Rank rank) { clients_.try_emplace(rank); });
    // MPICH finds out by host names when the text is longer than a value may be.
    if (std::string mapping = world_.placement.mapping(); mapping.size() < kLongestValue)
        values_.emplace(kMappingKey, std::move(mapping));
}

Engine::Client& Engine::client(Rank rank) {
    auto found = clients_.find(rank);
    if (found == clients_.end()) fail("rank {} is not of node {}", rank.number(), world_.node);
    return found->second;
}

Stage Engine::stage(Rank rank) const {
    auto found = clients_.find(rank);
    return found == clients_.end() ? Stage::silent : found->second.stage;
}

std::vector<std::pair<std::string, std::string>> Engine::environment(Rank rank) const {
    // MPICH's mpiexec sets these, too. Programs read the two of MPI; Fortran ones lose no output at a kill.
    return {{"GFORTRAN_UNBUFFERED_PRECONNECTED", "y"},
            {"PMI_RANK", std::to_string(rank.number())},
            {"PMI_SIZE", std::to_string(world_.size())},
            {"MPI_LOCALNRANKS", std::to_string(clients_.size())},
            {"MPI_LOCALRANKID", std::to_string(std::distance(clients_.begin(), clients_.find(rank)))}};
}

void Engine::from_rank(Rank rank, std::string_view bytes) {
    Client& who = client(rank);
    while (!bytes.empty() && who.ended.empty()) {
        const size_t end = bytes.find('\n');
        who.line += bytes.substr(0, end);
        if (who.line.size() > kLongestLine) {
            who.line.clear();
            refuse(rank, who, fmt::format("a line of more than {} bytes", kLongestLine));
        }
        if (end == bytes.npos) return;
        bytes.remove_prefix(end + 1);
        obey(rank, who, std::exchange(who.line, {}));
    }
}

const std::vector<Engine::Entry>& Engine::entries() {
    static const std::vector<Entry> all = {{"get_maxes", &Engine::get_maxes},
                                           {"get_appnum", &Engine::get_appnum},
                                           {"get_my_kvsname", &Engine::get_kvsname},
                                           {"get_universe_size", &Engine::get_universe_size},
                                           {"put", &Engine::put},
                                           {"get", &Engine::get},
                                           {"barrier_in", &Engine::barrier_in},
                                           {"finalize", &Engine::finalize},
                                           {"spawn", &Engine::spawn},
                                           {"publish_name", &Engine::name_service},
                                           {"unpublish_name", &Engine::name_service},
                                           {"lookup_name", &Engine::name_service}};
    return all;
}

void Engine::obey(Rank rank, Client& who, const std::string& line) try {
    if (who.spawning) {  // its lines are free text up to this one
        if (line == "endcmd") {
            who.spawning = false;
            say(rank, "cmd=spawn_result rc=-1 msg=not_with_this_launcher");
        }
        return;
    }
    const Command command = Command::parse(line);
    if (command.name() == "abort" && who.stage != Stage::silent) return abort(rank, who, command);
    if (who.stage == Stage::failed) return say_error(rank, who);
    if (who.stage == Stage::silent) {
        if (command.name() != "init") fail("'{}' before init", shortened(command.name()));
        return init(rank, who, command);
    }
    if (who.stage == Stage::finalized) fail("'{}' after finalize", shortened(command.name()));
    if (who.waiting) fail("'{}' inside a barrier", shortened(command.name()));
    for (const Entry& entry : entries())
        if (entry.name == command.name()) return (this->*entry.obey)(rank, who, command);
    fail("unknown command '{}'", shortened(command.name()));
} catch (const Error& error) {
    refuse(rank, who, error.what());
}

void Engine::say(Rank rank, const std::string& line) {
    always(line.find('\n') == line.npos && line.starts_with("cmd="), "an answer of PMI that is not one line");
    out(ToRank{rank, line + "\n"});
}

// No answer of PMI-1 has this name, so whatever the rank waits for has failed. One that does not listen
// is told no more after some time.
void Engine::say_error(Rank rank, Client& who) {
    constexpr int kMostErrors = 100;
    if (++who.errors <= kMostErrors) say(rank, "cmd=error rc=-1 msg=failed");
}

void Engine::refuse(Rank rank, Client& who, const std::string& why) {
    say_error(rank, who);
    if (std::exchange(who.stage, Stage::failed) == Stage::failed) return;
    out(Fault{rank, fmt::format("rank {}: PMI: {}", rank.number(), why)});
    always(!who.waiting || waiting_ > 0, "fewer ranks in a barrier than wait there");
    if (std::exchange(who.waiting, false)) --waiting_;
    fail_fence(fmt::format("rank {} broke the rules of PMI", rank.number()));
}

void Engine::init(Rank rank, Client& who, const Command& command) {
    if (command.number("pmi_version") != 1)
        fail("version {} of PMI is asked for, served is 1", command.number("pmi_version"));
    who.stage = Stage::running;
    say(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
}

void Engine::get_maxes(Rank rank, Client&, const Command&) {
    say(rank, fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={} rc=0", kLongestName,
                          kLongestKey, kLongestValue));
}

void Engine::get_appnum(Rank rank, Client&, const Command&) {
    say(rank, fmt::format("cmd=appnum appnum={} rc=0", world_.program_of(rank)));
}

void Engine::get_kvsname(Rank rank, Client&, const Command&) {
    say(rank, fmt::format("cmd=my_kvsname kvsname={} rc=0", world_.name));
}

void Engine::get_universe_size(Rank rank, Client&, const Command&) {
    say(rank,
        fmt::format("cmd=universe_size size={} rc=0", world_.universe ? world_.universe : world_.size()));
}

void Engine::put(Rank rank, Client&, const Command& command) {
    const std::string& key = command.get("key");
    const std::string& value = command.get("value");
    if (command.get("kvsname") != world_.name) return say(rank, "cmd=put_result rc=-1 msg=unknown_kvsname");
    if (key.empty() || key.size() >= kLongestKey || value.size() >= kLongestValue)
        fail("a key of {} bytes with a value of {}", key.size(), value.size());
    bytes_put_ += key.size() + value.size();
    if (bytes_put_ > kMostOfValues) fail("more values than {} MiB", kMostOfValues >> 20);
    if (!values_.try_emplace(key, value).second) return say(rank, "cmd=put_result rc=-1 msg=duplicate_key");
    puts_ += key + "=" + value + "\n";
    say(rank, "cmd=put_result rc=0 msg=success");
}

void Engine::get(Rank rank, Client&, const Command& command) {
    auto found = values_.find(command.get("key"));
    if (command.get("kvsname") != world_.name)
        return say(rank, "cmd=get_result rc=-1 msg=unknown_kvsname value=unknown");
    if (found == values_.end()) return say(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown");
    say(rank, "cmd=get_result rc=0 msg=success value=" + found->second);
}

void Engine::barrier_in(Rank, Client& who, const Command&) {
    always(!who.waiting && waiting_ < clients_.size(), "a rank that is in a barrier twice");
    who.waiting = true;
    ++waiting_;
    if (!broken_.empty()) return tell_waiting();
    for (const auto& [other, client] : clients_) {
        if (client.stage == Stage::finalized)
            return fail_fence(fmt::format("rank {} has finalized", other.number()));
        if (!client.ended.empty()) return fail_fence(fmt::format("rank {} {}", other.number(), client.ended));
    }
    if (waiting_ < clients_.size()) return;
    always(!fence_out_ && waiting_ == clients_.size(), "a part of a fence that goes up twice");
    fence_out_ = true;
    out(part(waiting_, std::exchange(puts_, {}), {}));
}

Fence Engine::part(uint32_t ranks, std::string data, std::string fault) const {
    Fence fence;
    fence.name.epoch = world_.epoch;
    fence.name.number = fence_;
    fence.ranks = ranks;
    fence.of = world_.size();
    fence.data = std::move(data);
    fence.fault = std::move(fault);
    return fence;
}

void Engine::result(const Fence& whole) {
    // The answer is to a world that is no more, or to a fence that has failed here.
    if (whole.name.epoch != world_.epoch || !whole.name.among.empty() || whole.name.number != fence_) return;
    if (!broken_.empty()) {
        if (!whole.fault.empty()) return;
        // Its part was up before it failed. The fence that the others enter next cannot be whole.
        ++fence_;
        return out(part(0, {}, broken_));
    }
    try {
        if (!whole.fault.empty()) fail("{}", whole.fault);
        if (!fence_out_ || !whole.whole()) fail("fence {} ended without node {}", fence_, world_.node);
        take(whole.data);
    } catch (const Error& error) {
        broken_ = error.what();
        return tell_waiting();
    }
    always(fence_out_ && waiting_ == clients_.size(), "a fence that ends without its ranks");
    ++fence_;
    waiting_ = 0;
    fence_out_ = false;
    for (auto& [rank, who] : clients_)
        if (std::exchange(who.waiting, false)) say(rank, "cmd=barrier_out rc=0 msg=success");
}

// "key=value" in lines, as put() writes them.
void Engine::take(const std::string& records) {
    for (size_t at = 0; at < records.size();) {
        const size_t end = records.find('\n', at), equals = records.find('=', at);
        if (end == records.npos || equals == records.npos || equals > end)
            fail("values of another node cannot be read");
        values_.try_emplace(records.substr(at, equals - at), records, equals + 1, end - equals - 1);
        at = end + 1;
    }
}

// Here, and by a part with the fault on the other nodes.
void Engine::fail_fence(const std::string& why) {
    if (broken_.empty()) {
        broken_ = why;
        out(part(0, {}, broken_));
    }
    tell_waiting();
}

void Engine::tell_waiting() {
    for (auto& [rank, who] : clients_) {
        if (!std::exchange(who.waiting, false)) continue;
        who.stage = Stage::failed;
        say_error(rank, who);
        out(Fault{rank, fmt::format("rank {} waits for all ranks, in vain: {}", rank.number(), broken_)});
    }
    waiting_ = 0;
}

void Engine::finalize(Rank rank, Client& who, const Command&) {
    who.stage = Stage::finalized;
    say(rank, "cmd=finalize_ack rc=0");
    if (waiting_ > 0) fail_fence(fmt::format("rank {} has finalized", rank.number()));
}

void Engine::abort(Rank rank, Client& who, const Command& command) {
    const int code = command.find("exitcode") ? command.number("exitcode") : 1;
    who.stage = Stage::failed;
    if (std::exchange(who.waiting, false)) --waiting_;
    out(Abort{rank, code, fmt::format("rank {} called MPI_Abort with {}", rank.number(), code)});
}

void Engine::spawn(Rank, Client& who, const Command&) { who.spawning = true; }

void Engine::name_service(Rank rank, Client&, const Command& command) {
    // publish_name -> publish_result
    say(rank, fmt::format("cmd={}_result rc=-1 info=failed msg=not_with_this_launcher",
                          command.name().substr(0, command.name().find('_'))));
}

void Engine::asked(const Ask& ask) {
    out(Answer{
        ask.epoch, ask.from, ask.number, {}, fmt::format("rank {} is started by PMI-1", ask.rank.number())});
}

void Engine::answered(const Answer&) {}  // it never asks

void Engine::ended(Rank rank, const std::string& how) {
    Client& who = client(rank);
    if (!who.ended.empty()) return;
    who.ended = how;
    if (std::exchange(who.waiting, false)) --waiting_;
    const bool died =
        std::exchange(who.stage, who.stage == Stage::running ? Stage::failed : who.stage) == Stage::running;
    if (died || waiting_ > 0) fail_fence(fmt::format("rank {} {}", rank.number(), how));
}

}  // namespace fermata::pmi
