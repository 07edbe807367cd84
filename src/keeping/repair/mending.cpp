#include "keeping/repair/mending.h"

#include <algorithm>

#include "base/invariant.h"
#include "base/log.h"
#include "base/text.h"
#include "keeping/orders/errand.h"

namespace fermata::keeping {
namespace {

// The lines of the report say where, and what was wrong with it.
std::string image_of(int32_t rank) { return fmt::format("the image of rank {}", rank); }

bool has_intact(const std::map<std::string, tree::Ranks>& intact, const std::string& host, int32_t rank) {
    auto found = intact.find(host);
    return found != intact.end() && found->second.contains(rank);
}

size_t times(const std::map<std::string, tree::Ranks>& intact, int32_t rank) {
    return static_cast<size_t>(std::count_if(intact.begin(), intact.end(),
                                             [&](const auto& one) { return one.second.contains(rank); }));
}

}  // namespace

std::string Mending::Flaw::what() const {
    return fmt::format("{} in the memory of {}", rank < 0 ? "parity" : image_of(rank), host);
}

void Mending::start(Generation only, int client) {
    always(!under_way(), "a repair that begins while one is under way");
    const level::Book& book = means_.account.book;
    what_ = {client, only, book.all_in(store::LevelName::memory), {}, {}};
    for (Generation one : what_.in_memory) {
        if (book.has(one, level::kBuddies)) what_.twice.insert(one);
        if (book.has(one, level::kParity)) what_.with_parity.insert(one);
    }
    all_.clear();
    for (store::GenerationInfo& one : means_.store.list())
        if (one.job == means_.settings.job_number && one.manifest && !one.manifest->step)
            all_.push_back(std::move(one));
    if (what_.only) {
        const store::GenerationInfo* info = info_of(what_.only);
        std::erase_if(what_.in_memory, [&](Generation one) {
            return one != what_.only && (!info || std::count(info->manifest->needs.begin(),
                                                             info->manifest->needs.end(), one.number()) == 0);
        });
    }
    found_.clear();
    rebuilt_.clear();
    encoded_.clear();
    encodings_ = 0;
    means_.account.damage.to_encode.clear();
    troubles_.clear();
    mended_.clear();
    left_.clear();
    ask(Step::looking);
}

void Mending::ask(Step step) {
    always(step == Step::looking || step == Step::looking_again, "a question in a step that asks nothing");
    step_ = step;
    asking_.emplace(wire::AskCopies{means_.numbers.next(), what_.in_memory, {}, true}, means_.nodes.hosts());
    means_.nodes.tell(asking_->question());
}

bool Mending::heard(const wire::Message& message) {
    if (auto* m = std::get_if<wire::Copies>(&message)) return asking_ && asking_->heard(*m);
    if (auto* m = std::get_if<wire::Fetched>(&message)) return fetching_ && fetching_->heard(*m);
    if (auto* m = std::get_if<wire::Rebuilt>(&message)) return rebuilding_ && rebuilding_->heard(*m);
    if (auto* m = std::get_if<wire::Inspected>(&message)) return inspecting_ && inspecting_->heard(*m);
    return false;
}

void Mending::say_again() {
    if (step_ == Step::looking || step_ == Step::looking_again) means_.nodes.tell(asking_->question());
    if (step_ == Step::fetching) means_.nodes.tell(fetching_->order());
    if (step_ == Step::rebuilding) means_.nodes.tell(rebuilding_->order());
    if (step_ == Step::inspecting) means_.nodes.tell(inspecting_->order());
}

bool Mending::turn(const Moment& moment) {
    const Generation doubtful = std::exchange(means_.account.damage.doubtful, Generation());
    if (doubtful > looked_at_ && !under_way()) {
        looked_at_ = doubtful;
        start(doubtful, -1);
    }
    // Nodes do one such thing at a time.
    if (moment.writing || !go_on()) return false;
    if (what_.client < 0) say_what_was_mended();
    return true;
}

// Nobody has asked: the copy to files that left the doubt is tried again when nothing is left of it.
void Mending::say_what_was_mended() const {
    for (const Line& line : mended_) say(fmt::format("{}: repaired: {}", line.generation.name(), line.text));
    for (const Line& line : left_) say(fmt::format("{}: {}", line.generation.name(), line.text));
    auto& damage = means_.account.damage;
    damage.is_left = !left_.empty() || mended_.empty();
    if (!damage.is_left) damage.is_mended = true;
}

// Does what can be done now. True: it is over, since this call.
bool Mending::go_on() {
    if (!under_way()) return false;
    while (under_way() && is_done()) end_of_step();
    return !under_way();
}

// Nodes that are gone are not waited for.
bool Mending::is_done() {
    auto done = [here = means_.nodes.hosts()](auto& round) {
        round->only(here);
        return round->done();
    };
    switch (step_) {
        case Step::fetching:
            return done(fetching_);
        case Step::rebuilding:
            return done(rebuilding_);
        case Step::inspecting:
            return done(inspecting_);
        case Step::encoding:
            return means_.account.damage.to_encode.empty();
        default:
            return done(asking_);
    }
}

void Mending::end_of_step() {
    always(under_way() && asking_, "the end of a step of no repair");
    switch (step_) {
        case Step::looking:
            found_ = flaws();
            return enter(Step::fetching);
        case Step::fetching:
            for (const Fetching::Failed& one : fetching_->failed()) troubles_.push_back(one.why);
            return enter(Step::rebuilding);
        case Step::rebuilding:
            if (!rebuilding_->error().empty()) troubles_.push_back(rebuilding_->error());
            return enter(Step::rebuilding);
        case Step::inspecting:
        case Step::encoding:
            return ask(Step::looking_again);
        default:
            break;
    }
    // Twice at most: a node may have read what another one had added up before.
    const std::set<Generation> damaged = with_damaged_parity();
    if (damaged.empty() || ++encodings_ > 2) return conclude();
    encoded_.insert(damaged.begin(), damaged.end());
    means_.account.damage.to_encode.assign(damaged.begin(), damaged.end());
    step_ = Step::encoding;
}

// Only of what is whole: parity of a damaged image would give that back.
std::set<Generation> Mending::with_damaged_parity() const {
    std::set<Generation> parity, images;
    for (const Flaw& flaw : flaws()) (flaw.rank < 0 ? parity : images).insert(flaw.generation);
    for (Generation one : images) parity.erase(one);
    return parity;
}

// A step that has nothing to do is passed over.
void Mending::enter(Step step) {
    step_ = step;
    if (step == Step::fetching) {
        fetching_.emplace(errands());
        if (!fetching_->order().errands.empty()) return means_.nodes.tell(fetching_->order());
        step_ = Step::rebuilding;
    }
    if (step_ == Step::rebuilding) {
        if (auto order = next_rebuild()) {
            rebuilding_.emplace(*order);
            return means_.nodes.tell(*order);
        }
        step_ = Step::inspecting;
    }
    inspecting_.emplace(shares());
    if (!inspecting_->order().shares.empty()) return means_.nodes.tell(inspecting_->order());
    ask(Step::looking_again);
}

const store::GenerationInfo* Mending::info_of(Generation generation) const {
    for (const store::GenerationInfo& one : all_)
        if (Generation(one.number) == generation) return &one;
    return nullptr;
}

std::set<Mending::Flaw> Mending::flaws() const {
    std::set<Flaw> flaws;
    for (auto& [host, answer] : asking_->answers())
        for (const wire::Flaw& one : answer.flaws) flaws.insert({one.generation, one.rank, host, one.why});
    for (Generation generation : what_.in_memory)
        if (const store::GenerationInfo* info = info_of(generation)) add_missing(*info, flaws);
    for (Generation generation : what_.with_parity) add_missing_parity(generation, flaws);
    return flaws;
}

// Whoever says that it has parity says which nodes are in that group.
void Mending::add_missing_parity(Generation generation, std::set<Flaw>& flaws) const {
    std::map<std::array<uint8_t, 16>, std::set<std::string>> with, of;  // by group
    for (auto& [host, answer] : asking_->answers())
        for (const wire::PeerGroup& group : answer.parity) {
            if (group.generation != generation) continue;
            with[group.name].insert(host);
            for (const wire::Peer& peer : group.peers) of[group.name].insert(peer.host);
        }
    for (auto& [name, hosts] : of)
        for (const std::string& host : hosts)
            if (asking_->answers().count(host) && with[name].count(host) == 0)
                flaws.insert({generation, -1, host, "it is missing, or of another group"});
}

// Where it was written it is to be, and twice where there are buddies. An image that can be read and is not
// the one that the manifest names is none.
void Mending::add_missing(const store::GenerationInfo& info, std::set<Flaw>& flaws) const {
    if (info.manifest->level != store::LevelName::memory) return;
    const Generation generation(info.number);
    const auto intact = Rebuilding::intact_of(info, asking_->answers());
    for (const store::ImageEntry& entry : info.manifest->images) {
        const auto rank = static_cast<int32_t>(entry.rank.number());
        const std::string& own = info.manifest->nodes.at(entry.rank.index());
        auto missing_at = [&](const std::string& host) {
            if (asking_->answers().count(host) && !has_intact(intact, host, rank))
                flaws.insert({generation, rank, host, "it is missing, or another one"});
        };
        missing_at(own);
        if (!what_.twice.count(generation) || times(intact, rank) >= 2) continue;
        if (auto buddy = means_.account.buddy_of(own); !buddy.empty()) missing_at(buddy);
    }
}

// From another node that has it intact.
wire::Fetch Mending::errands() const {
    wire::Fetch order{means_.numbers.next(), true, means_.settings.levels.copy_limit, {}, Medium::memory};
    std::map<std::tuple<Generation, std::string, std::string>, std::vector<uint32_t>> all;
    for (const Flaw& flaw : found_) {
        const store::GenerationInfo* info = info_of(flaw.generation);
        if (flaw.rank < 0 || !info) continue;
        for (auto& [host, ranks] : Rebuilding::intact_of(*info, asking_->answers()))
            if (host != flaw.host && ranks.contains(flaw.rank)) {
                all[{flaw.generation, host, flaw.host}].push_back(static_cast<uint32_t>(flaw.rank));
                break;
            }
    }
    for (auto& [way, ranks] : all) {
        auto& [generation, from, to] = way;
        always(info_of(generation) && from != to, "an image that a node fetches from itself");
        const store::Manifest& manifest = *info_of(generation)->manifest;
        std::vector<Generation> generations;
        for (uint32_t needed : manifest.needs) generations.push_back(Generation(needed));
        std::sort(generations.begin(), generations.end());
        generations.push_back(generation);
        level::Move move;
        move.from = {from, Medium::memory};
        move.to = to;
        move.ranks = ranks;
        order.errands.push_back(
            errand_of(move, manifest, generations, asking_->answers().at(from).addresses));
    }
    return order;
}

// Orders the images of the next generation that no node has whole.
std::optional<wire::Rebuild> Mending::next_rebuild() {
    for (const Flaw& flaw : found_) {
        const store::GenerationInfo* info = info_of(flaw.generation);
        if (flaw.rank < 0 || !info || rebuilt_.count(flaw.generation)) continue;
        if (times(Rebuilding::intact_of(*info, asking_->answers()), flaw.rank) > 0) continue;
        rebuilt_.insert(flaw.generation);
        Rebuilding::Places places;
        for (const Flaw& one : found_)
            if (one.generation == flaw.generation) places[one.rank] = one.host;
        if (auto order =
                Rebuilding::order_for(*info, all_, asking_->answers(), places, means_.numbers.next()))
            return order;
    }
    return {};
}

// A node that has the image in memory looks at it in files: it can mend it.
wire::Inspect Mending::shares() const {
    wire::Inspect order{means_.numbers.next(), {}};
    std::vector<std::string> hosts;
    for (auto& [host, answer] : asking_->answers())
        if (means_.nodes.hosts().count(host)) hosts.push_back(host);
    if (hosts.empty()) return order;
    for (const store::GenerationInfo& info : all_) {
        if (info.manifest->on_nodes() || (what_.only && what_.only != Generation(info.number))) continue;
        const auto intact = Rebuilding::intact_of(info, asking_->answers());
        std::map<std::string, tree::Ranks> of;
        for (const store::ImageEntry& entry : info.manifest->images) {
            const auto rank = static_cast<int32_t>(entry.rank.number());
            auto has_it = std::find_if(hosts.begin(), hosts.end(), [&](const std::string& host) {
                return has_intact(intact, host, rank);
            });
            of[has_it == hosts.end() ? hosts[entry.rank.index() % hosts.size()] : *has_it].add(
                tree::Ranks(rank));
        }
        for (auto& [host, ranks] : of) order.shares.push_back({host, Generation(info.number), ranks.runs()});
    }
    return order;
}

// A generation that has gone meanwhile is nobody's damage.
void Mending::conclude() {
    always(step_ == Step::looking_again && fetching_ && inspecting_,
           "the end of a repair that has not looked again");
    step_ = Step::none;
    std::set<Generation> there;
    for (const store::GenerationInfo& one : means_.store.list())
        if (one.manifest) there.insert(Generation(one.number));
    const std::set<Flaw> still = flaws();
    auto from = [&](const Flaw& flaw) -> std::string {
        if (flaw.rank < 0) return "the images of its group";
        for (const wire::Errand& errand : fetching_->order().errands)
            if (errand.to == flaw.host && errand.generations.back() == flaw.generation)
                if (auto ranks = tree::Ranks::of(errand.ranks); ranks && ranks->contains(flaw.rank))
                    return "the memory of " + errand.from;
        return rebuilt_.count(flaw.generation) ? "parity" : "files";
    };
    for (const Flaw& flaw : found_) {
        if (!there.count(flaw.generation) || still.count(flaw)) continue;
        if (!asking_->answers().count(flaw.host))
            left_.push_back(
                {flaw.generation, fmt::format("{}: {}; its node daemon is gone", flaw.what(), flaw.why)});
        else if (flaw.rank >= 0 || encoded_.count(flaw.generation))
            mended_.push_back(
                {flaw.generation, fmt::format("{} from {}: {}", flaw.what(), from(flaw), flaw.why)});
    }
    for (const Flaw& flaw : still)
        if (there.count(flaw.generation))
            left_.push_back({flaw.generation,
                             fmt::format("{}: {}; {}", flaw.what(), flaw.why,
                                         flaw.rank < 0 ? "it could not be made again"
                                         : troubles_.empty()
                                             ? "no other copy of it is intact, and no parity gives it back"
                                             : troubles_.front())});
    for (const wire::Flaw& one : inspecting_->mended()) mended_.push_back({one.generation, one.why});
    for (const wire::Flaw& one : inspecting_->left())
        if (there.count(one.generation)) left_.push_back({one.generation, one.why});
}

}  // namespace fermata::keeping
