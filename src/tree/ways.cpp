#include "tree/ways.h"

#include <algorithm>

namespace fermata::tree {

bool Ways::newer_is_known(const wire::Station& station) const {
    auto known = turns_.find(station.node);
    return known != turns_.end() && known->second.turn > station.turn;
}

Ways::News Ways::came(int child, const Stations& stations) {
    News news;
    if (stations.empty()) return news;
    // A daemon comes once in a turn: what is known of it came by a newer way, with someone above it.
    const wire::Station& first = stations[0];
    auto known = turns_.find(first.node);
    news.old = known != turns_.end() && known->second.turn >= first.turn && to(first.node) != child;
    news.old = news.old || newer_is_known(first);
    ++news_;
    if (news.old) {
        owes_[child][stations[0].node] = stations[0].turn;
        news.not_believed.push_back(child);
        return news;
    }
    for (const wire::Station& one : stations) {
        if (newer_is_known(one)) {  // whoever is above it has not noticed yet
            owes_[child][one.node] = one.turn;
            news.not_believed.push_back(child);
            continue;
        }
        auto [turn, fresh] = turns_.try_emplace(one.node, Turn{one.turn, news_});
        if (!fresh && turn->second.turn < one.turn) turn->second = {one.turn, news_};
        auto before = ways_.find(one.node);
        if (before != ways_.end() && before->second.child != child) {
            // With the first one went those below it: its word is enough.
            if (one.node == stations[0].node || before->second.turn != one.turn)
                owes_[before->second.child][one.node] = before->second.turn;
            news.not_believed.push_back(before->second.child);
            news.forget.push_back(one.node);
        }
        ways_[one.node] = {child, one.turn, news_};
    }
    return news;
}

Ways::News Ways::left(int child, const Stations& stations) {
    News news;
    news.not_believed.push_back(child);
    if (stations.empty()) return news;
    news.old = newer_is_known(stations[0]);
    for (const wire::Station& one : stations) {
        auto& owed = owes_[child];
        if (auto due = owed.find(one.node); due != owed.end() && one.turn >= due->second) owed.erase(due);
        auto way = ways_.find(one.node);
        if (newer_is_known(one) || way == ways_.end() || way->second.child != child) continue;
        // The first has come elsewhere below the same child: with this one, if it was named there.
        if (news.old && way->second.news >= turns_.at(stations[0].node).news) continue;
        news.forget.push_back(one.node);
        ways_.erase(way);
    }
    return news;
}

Ways::Stations Ways::gone(int child) {
    Stations stations;
    for (auto& [node, way] : ways_)
        if (way.child == child) stations.push_back({node, way.turn});
    for (const wire::Station& one : stations) ways_.erase(one.node);
    // Others may wait for this word of those, too.
    for (auto& [node, turn] : owes_[child]) stations.push_back({node, turn});
    owes_.erase(child);
    auto itself = std::find_if(stations.begin(), stations.end(), [&](auto& one) { return one.node == child; });
    if (itself != stations.end()) std::swap(*itself, stations.front());
    return stations;
}

int Ways::to(int node) const {
    auto way = ways_.find(node);
    return way == ways_.end() ? -1 : way->second.child;
}

bool Ways::believed(int child) const {
    auto owed = owes_.find(child);
    return owed == owes_.end() || owed->second.empty();
}

std::vector<int> Ways::doubted() const {
    std::vector<int> children;
    for (auto& [child, owed] : owes_)
        if (!owed.empty()) children.push_back(child);
    return children;
}

Ways::Stations Ways::all() const {
    Stations stations;
    for (auto& [node, way] : ways_) stations.push_back({node, way.turn});
    return stations;
}

}  // namespace fermata::tree
