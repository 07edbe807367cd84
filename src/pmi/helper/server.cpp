#include "pmi/helper/server.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "pmi/helper/infos.h"
#include "pmi/world.h"

namespace fermata::pmi::helper {
namespace {

Server* the_server = nullptr;  // of the functions that libpmix gives nothing of ours back

void check(pmix_status_t status, const char* what) {
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        fail("libpmix: {}: {}", what, PMIx_Error_string(status));
}

// One by one: libpmix does not understand ranges.
std::string enumerated(const std::vector<RankRange>& ranges) {
    std::string text;
    for (const RankRange& range : ranges)
        range.each([&](Rank rank) { text += fmt::format("{}{}", text.empty() ? "" : ",", rank.number()); });
    return text;
}

Placement placement_of(const Start& start) { return Placement::of(start.placement); }

}  // namespace

pmix_server_module_t Server::module() {
    pmix_server_module_t all{};  // null: refused by libpmix with PMIX_ERR_NOT_SUPPORTED
    all.client_connected = on_connected;
    all.client_finalized = on_finalized;
    all.abort = on_abort;
    all.fence_nb = on_fence;
    all.direct_modex = on_direct_modex;
    return all;
}

Ready Server::start(const Start& start, const std::string& directory) {
    the_server = this;
    name_ = start.name;
    const Placement placement = placement_of(start);
    size_ = placement.ranks();
    Infos infos;
    infos.text(PMIX_SERVER_TMPDIR, directory).text(PMIX_SYSTEM_TMPDIR, directory);
    infos.text(PMIX_SERVER_NSPACE, "fermata." + name_).number(PMIX_SERVER_RANK, start.node);
    infos.text(PMIX_HOSTNAME, start.hosts.at(start.node));
    // Else every rank looks at all of the hardware by itself.
    infos.flag(PMIX_SERVER_SHARE_TOPOLOGY);
    static pmix_server_module_t functions = module();
    check(PMIx_server_init(&functions, infos.data(), infos.size()), "init");
    register_world(start, directory);
    Ready ready;
    for (const RankRange& range : placement.ranks_on(start.node))
        range.each([&](Rank rank) {
            register_rank(rank);
            pmix_proc_t proc;
            PMIX_LOAD_PROCID(&proc, name_.c_str(), rank.number());
            char** names = nullptr;
            check(PMIx_server_setup_fork(&proc, &names), "environment of a rank");
            Environment& of = ready.ranks.emplace_back();
            of.rank = rank;
            for (char** name = names; name && *name; ++name) {
                const std::string text = *name;
                const size_t equals = text.find('=');
                if (equals != text.npos)
                    of.variables.push_back({text.substr(0, equals), text.substr(equals + 1)});
                ::free(*name);
            }
            ::free(names);
        });
    return ready;
}

// Registers the facts that ranks ask for before they know each other. About ranks elsewhere libpmix knows
// what the two maps tell.
void Server::register_world(const Start& start, const std::string& directory) {
    const Placement placement = placement_of(start);
    const std::vector<RankRange> here = placement.ranks_on(start.node);
    std::string hosts, ranks;
    const std::vector<uint32_t> nodes = placement.nodes_with_ranks();
    for (uint32_t node : nodes) {
        hosts += (hosts.empty() ? "" : ",") + start.hosts.at(node);
        ranks += (ranks.empty() ? "" : ";") + enumerated(placement.ranks_on(node));
    }
    // As the map of nodes has it, in which those without ranks are not.
    const auto place_here =
        static_cast<uint32_t>(std::lower_bound(nodes.begin(), nodes.end(), start.node) - nodes.begin());
    char *node_map = nullptr, *rank_map = nullptr;
    check(PMIx_generate_regex(hosts.c_str(), &node_map), "map of nodes");
    check(PMIx_generate_ppn(ranks.c_str(), &rank_map), "map of ranks");
    World world;
    world.placement = placement;
    world.programs = start.programs.empty() ? std::vector<uint32_t>{size_} : start.programs;
    uint32_t local = 0;
    for (const RankRange& range : here) local += range.count();
    Infos infos;
    infos.text(PMIX_JOBID, name_).text(PMIX_NSDIR, directory).text(PMIX_TMPDIR, directory);
    infos.number(PMIX_JOB_SIZE, size_).number(PMIX_MAX_PROCS, size_);
    infos.number(PMIX_UNIV_SIZE, start.universe ? start.universe : size_);
    infos.number(PMIX_JOB_NUM_APPS, static_cast<uint32_t>(world.programs.size()));
    infos.number(PMIX_NUM_NODES, static_cast<uint32_t>(nodes.size())).number(PMIX_NODEID, place_here);
    infos.regex(PMIX_NODE_MAP, node_map).regex(PMIX_PROC_MAP, rank_map);
    infos.number(PMIX_LOCAL_SIZE, local).number(PMIX_NODE_SIZE, local);
    if (start.cores > 0 && local > start.cores) infos.flag(PMIX_NODE_OVERSUBSCRIBED);
    infos.rank(PMIX_LOCALLDR, here.front().first().number()).text(PMIX_LOCAL_PEERS, enumerated(here));
    uint32_t first = 0;
    for (uint32_t program = 0; program < world.programs.size(); ++program) {
        Infos of;
        of.number(PMIX_APPNUM, program).number(PMIX_APP_SIZE, world.programs[program]);
        of.rank(PMIX_APPLDR, first);
        infos.array(PMIX_APP_INFO_ARRAY, of);
        first += world.programs[program];
    }
    if (world.programs.size() == 1) infos.number(PMIX_APP_SIZE, size_).rank(PMIX_APPLDR, 0);
    uint32_t place = 0;
    for (const RankRange& range : here)
        range.each([&](Rank rank) {
            const uint32_t program = world.program_of(rank);
            uint32_t before = 0;
            for (uint32_t other = 0; other < program; ++other) before += world.programs[other];
            Infos of;
            of.rank(PMIX_RANK, rank.number()).number(PMIX_APPNUM, program);
            of.rank(PMIX_GLOBAL_RANK, rank.number());
            of.rank(PMIX_APP_RANK, rank.number() - before).text(PMIX_HOSTNAME, start.hosts.at(start.node));
            of.small(PMIX_LOCAL_RANK, static_cast<uint16_t>(place));
            of.small(PMIX_NODE_RANK, static_cast<uint16_t>(place)).number(PMIX_NODEID, place_here);
            infos.array(PMIX_PROC_DATA, of);
            ++place;
        });
    check(PMIx_server_register_nspace(name_.c_str(), static_cast<int>(local), infos.data(), infos.size(),
                                      nullptr, nullptr),
          "the world");
    ::free(node_map);
    ::free(rank_map);
}

void Server::register_rank(Rank rank) {
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, name_.c_str(), rank.number());
    check(PMIx_server_register_client(&proc, ::getuid(), ::getgid(), nullptr, nullptr, nullptr), "a rank");
}

uint32_t Server::wait(pmix_modex_cbfunc_t answer, void* data) {
    std::lock_guard held(lock_);
    waiting_[next_] = {answer, data};
    return next_++;
}

void Server::resolve(uint32_t number, const std::string& data, bool failed) {
    Waiting waiting;
    {
        std::lock_guard held(lock_);
        auto found = waiting_.extract(number);
        if (!found) return;
        waiting = found.mapped();
    }
    // libpmix copies nothing: the bytes live until it gives them back.
    auto* bytes = new std::string(data);
    waiting.answer(
        failed ? PMIX_ERR_PROC_ABORTED : PMIX_SUCCESS, failed ? nullptr : bytes->data(),
        failed ? 0 : bytes->size(), waiting.data, [](void* kept) { delete static_cast<std::string*>(kept); },
        bytes);
}

void Server::fenced(const Fenced& fenced) { resolve(fenced.number, fenced.data, !fenced.fault.empty()); }
void Server::given(const Given& given) { resolve(given.number, given.data, !given.fault.empty()); }

void Server::wanted(const Wanted& wanted) {
    auto* question = new Question{this, wanted.from, wanted.number, wanted.rank};
    std::string how;
    {
        std::lock_guard held(lock_);
        questions_.insert(question);
        if (auto found = ended_.find(wanted.rank); found != ended_.end()) how = found->second;
    }
    if (!how.empty()) return answer(question, PMIX_ERR_PROC_ABORTED, nullptr, 0);
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, name_.c_str(), wanted.rank.number());
    const pmix_status_t status = PMIx_server_dmodex_request(
        &proc,
        [](pmix_status_t result, char* data, size_t size, void* cookie) {
            auto* asked = static_cast<Question*>(cookie);
            asked->server->answer(asked, result, data, size);
        },
        question);
    if (status != PMIX_SUCCESS) answer(question, status, nullptr, 0);
}

// A question that was answered already (its rank has ended) gets no second answer. libpmix may come with its
// own answer any time later, so the question is kept.
void Server::answer(Question* question, pmix_status_t status, const char* data, size_t size) {
    {
        std::lock_guard held(lock_);
        questions_.erase(question);
        if (std::exchange(question->answered, true)) return;
    }
    Publication said{question->from, question->number, {}, {}};
    if (status == PMIX_SUCCESS)
        said.data.assign(data, size);
    else
        said.fault = fmt::format("rank {} has published nothing: {}", question->rank.number(),
                                 PMIx_Error_string(status));
    send_(said);
}

void Server::ended(const Ended& ended) {
    std::vector<Question*> open;
    {
        std::lock_guard held(lock_);
        ended_.emplace(ended.rank, ended.how);
        for (Question* question : questions_)
            if (question->rank == ended.rank) open.push_back(question);
    }
    for (Question* question : open) answer(question, PMIX_ERR_PROC_ABORTED, nullptr, 0);
}

void Server::stop() {
    if (the_server == this) PMIx_server_finalize();
}

pmix_status_t Server::reached(const pmix_proc_t* proc, Stage stage) {
    auto rank = Rank::among(proc->rank, the_server->size_);
    if (!rank) return PMIX_ERR_BAD_PARAM;
    the_server->send_(Reached{*rank, stage});
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t Server::on_connected(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t, void*) {
    return reached(proc, Stage::running);
}

pmix_status_t Server::on_finalized(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t, void*) {
    return reached(proc, Stage::finalized);
}

pmix_status_t Server::on_abort(const pmix_proc_t* proc, void*, int status, const char text[], pmix_proc_t*,
                               size_t, pmix_op_cbfunc_t, void*) {
    auto rank = Rank::among(proc->rank, the_server->size_);
    if (!rank) return PMIX_ERR_BAD_PARAM;
    the_server->send_(Aborted{*rank, status, text ? text : ""});
    return PMIX_OPERATION_SUCCEEDED;
}

// False: ranks of another world are among them, or none.
bool Server::ranks_of(const pmix_proc_t* procs, size_t count, std::vector<RankRange>* among) const {
    std::vector<uint32_t> ranks;
    for (size_t i = 0; i < count; ++i) {
        if (name_ != procs[i].nspace) return false;
        if (procs[i].rank == PMIX_RANK_WILDCARD) {
            among->clear();
            return true;
        }
        if (procs[i].rank >= size_) return false;
        ranks.push_back(procs[i].rank);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    if (ranks.size() == size_) return true;
    for (uint32_t rank : ranks) {
        if (!among->empty() && among->back().end() == rank)
            among->back() = {among->back().first(), among->back().count() + 1};
        else
            among->push_back({Rank(rank), 1});
    }
    return !ranks.empty();
}

pmix_status_t Server::on_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t[], size_t,
                               char* data, size_t size, pmix_modex_cbfunc_t answer, void* cookie) {
    std::vector<RankRange> among;
    if (!the_server->ranks_of(procs, count, &among)) return PMIX_ERR_NOT_SUPPORTED;
    const uint32_t number = the_server->wait(answer, cookie);
    the_server->send_(Entered{number, std::move(among), data ? std::string(data, size) : std::string()});
    ::free(data);
    return PMIX_SUCCESS;
}

pmix_status_t Server::on_direct_modex(const pmix_proc_t* proc, const pmix_info_t[], size_t,
                                      pmix_modex_cbfunc_t answer, void* cookie) {
    if (the_server->name_ != proc->nspace || proc->rank >= the_server->size_) return PMIX_ERR_NOT_SUPPORTED;
    const uint32_t number = the_server->wait(answer, cookie);
    the_server->send_(Request{number, Rank(proc->rank)});
    return PMIX_SUCCESS;
}

}  // namespace fermata::pmi::helper
