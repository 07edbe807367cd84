#include "keeping/orders/fetching.h"

#include <fmt/core.h>

#include "base/invariant.h"

namespace fermata::keeping {

Fetching::Fetching(wire::Fetch order) : order_(std::move(order)) {
    always(order_.number > 0, "an order to fetch without a number");
    for (const wire::Errand& errand : order_.errands) waiting_.insert(errand.to);
}

void Fetching::fail(const std::string& to, const std::optional<NodePlace>& from, const std::string& why) {
    for (const wire::Errand& errand : order_.errands)
        if (errand.to == to && (!from || errand.source() == *from)) failed_.push_back({errand, why});
}

bool Fetching::heard(const wire::Fetched& answer) {
    if (answer.number != order_.number) return false;
    if (waiting_.erase(answer.host) == 0) return true;  // said again
    bytes_ += answer.bytes;
    for (const wire::Failure& one : answer.failures)
        fail(answer.host, NodePlace{one.from, one.medium}, fmt::format("{}: {}", answer.host, one.error));
    return true;
}

void Fetching::only(const std::set<std::string>& hosts) {
    for (auto one = waiting_.begin(); one != waiting_.end();) {
        if (hosts.count(*one)) {
            ++one;
            continue;
        }
        fail(*one, {}, fmt::format("the node daemon of {} is gone", *one));
        one = waiting_.erase(one);
    }
}

}  // namespace fermata::keeping
