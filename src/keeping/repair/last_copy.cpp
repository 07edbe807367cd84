#include "keeping/repair/last_copy.h"

#include <algorithm>

#include "base/invariant.h"
#include "base/log.h"

namespace fermata::keeping {

void LastCopy::start(Generation generation) {
    always(static_cast<bool>(generation) && !under_way_, "no generation to make whole, or two at once");
    hosts_ = means_.nodes.hosts();
    generation_ = generation;
    numbers_ = {generation.number()};
    for (const store::GenerationInfo& one : means_.store.list())
        if (one.number == generation.number() && one.manifest)
            numbers_.insert(numbers_.end(), one.manifest->needs.begin(), one.manifest->needs.end());
    rebuilding_.reset();
    unable_.clear();
    means_.account.whole = {};
    trouble_.clear();
    why_not_.clear();
    rebuilt_.clear();
    under_way_ = true;
    ask();
}

void LastCopy::ask() {
    asking_.emplace(wire::AskCopies{means_.numbers.next(), {numbers_.begin(), numbers_.end()}, {}},
                    means_.nodes.hosts());
    means_.nodes.tell(asking_->question());
}

bool LastCopy::heard(const wire::Message& message) {
    if (auto* copies = std::get_if<wire::Copies>(&message)) return asking_ && asking_->heard(*copies);
    if (auto* done = std::get_if<wire::Rebuilt>(&message)) return rebuilding_ && rebuilding_->heard(*done);
    return false;
}

void LastCopy::say_again() {
    if (!under_way_) return;
    if (rebuilding_)
        means_.nodes.tell(rebuilding_->order());
    else
        means_.nodes.tell(asking_->question());
}

bool LastCopy::go_on() {
    if (!under_way_) return true;
    if (rebuilding_) {
        rebuilding_->only(means_.nodes.hosts());
        if (!rebuilding_->done()) return false;
        unable_.insert(rebuilding_->unable().begin(), rebuilding_->unable().end());
        if (!rebuilding_->error().empty()) trouble_ = rebuilding_->error();
        if (!rebuilding_->rebuilt().empty()) rebuilt_ = rebuilding_->rebuilt();
        rebuilding_.reset();
        ask();  // what was rebuilt is compared as all other images are
    }
    asking_->only(means_.nodes.hosts());
    if (asking_->done()) look();
    return !under_way_;
}

// Again after each round: it ends, since a node that could not do its part gets none any more.
void LastCopy::look() {
    always(under_way_ && asking_ && asking_->done(), "a look at answers that have not all come");
    const std::vector<store::GenerationInfo> all = means_.store.list();
    auto wanted = std::find_if(all.begin(), all.end(), [&](const store::GenerationInfo& one) {
        return one.number == generation_.number() && one.manifest;
    });
    if (wanted == all.end()) return end("its manifest is not there any more");
    if (std::vector<std::string> places = find_places(*wanted, all); !places.empty()) {
        means_.account.whole = {generation_, std::move(places)};
        return end("");
    }
    const auto order = Rebuilding::order_for(*wanted, all, asking_->answers(), where_to_rebuild(*wanted),
                                             means_.numbers.next());
    const bool again = order && std::all_of(order->repairs.begin(), order->repairs.end(),
                                            [&](const auto& one) { return !unable_.count(one.host); });
    if (!again)
        return end(!trouble_.empty() ? trouble_ : "what the nodes that are left have is not enough for it");
    rebuilding_.emplace(*order);
    means_.nodes.tell(*order);
}

void LastCopy::end(const std::string& why_not) {
    why_not_ = why_not;
    under_way_ = false;
    if (!why_not.empty()) spdlog::warn("{}: {}", generation_.name(), why_not);
}

bool LastCopy::made_whole() const {
    const std::vector<std::string> places = means_.account.places_if_whole(means_.nodes.hosts());
    return !places.empty() && (places != means_.account.places || !rebuilt_.empty());
}

// A node copies the images of a rank of all generations.
std::vector<std::string> LastCopy::find_places(const store::GenerationInfo& wanted,
                                               const std::vector<store::GenerationInfo>& all) const {
    std::map<std::string, std::vector<tree::Ranks>> intact;  // of each generation
    for (const store::GenerationInfo& one : all) {
        if (!one.manifest || std::count(numbers_.begin(), numbers_.end(), one.number) == 0) continue;
        auto of = Rebuilding::intact_of(one, asking_->answers());
        for (const std::string& host : means_.nodes.hosts()) intact[host].push_back(of[host]);
    }
    std::vector<std::string> places;
    for (const store::ImageEntry& entry : wanted.manifest->images) {
        const auto rank = static_cast<int32_t>(entry.rank.number());
        auto has_it = [&](const auto& one) {
            return std::all_of(one.second.begin(), one.second.end(),
                               [&](const tree::Ranks& ranks) { return ranks.contains(rank); });
        };
        auto found = std::find_if(intact.begin(), intact.end(), has_it);
        // Where it was written, if it is there still.
        if (auto own = intact.find(wanted.manifest->nodes.at(entry.rank.index()));
            own != intact.end() && has_it(*own))
            found = own;
        if (found == intact.end()) return {};
        places.push_back(found->first);
    }
    always(places.size() == wanted.manifest->images.size(), "a place for some images, and not for all");
    return places;
}

// Chooses one node for all that another node had; nodes take turns.
Rebuilding::Places LastCopy::where_to_rebuild(const store::GenerationInfo& wanted) const {
    std::vector<std::string> able;
    for (auto& [host, answer] : asking_->answers())
        if (!unable_.count(host) && means_.nodes.hosts().count(host)) able.push_back(host);
    Rebuilding::Places places;
    if (able.empty()) return places;
    std::map<std::string, std::string> instead;  // of nodes that are gone, or could not
    for (const store::ImageEntry& entry : wanted.manifest->images) {
        const std::string& node = wanted.manifest->nodes.at(entry.rank.index());
        const bool there = std::count(able.begin(), able.end(), node) > 0;
        auto place = instead.try_emplace(node, there ? node : able[instead.size() % able.size()]).first;
        places[static_cast<int32_t>(entry.rank.number())] = place->second;
    }
    return places;
}

}  // namespace fermata::keeping
