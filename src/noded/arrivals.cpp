#include "noded/arrivals.h"

#include <utility>

namespace fermata::noded {

void Arrivals::expect(const wire::StartCopy& order, const Site& site, const files::Folder& folder) {
    transfer::Fetcher::Order work;
    work.job = site.job;
    work.folder = folder;
    work.named = false;
    work.key = site.key;
    work.image_key = site.image_key;
    work.silent_ms = site.silent_ms;
    wire::Errand errand;
    errand.to = site.node;
    errand.from = order.host;
    errand.addresses = order.images;
    errand.generations = {order.generation};
    errand.ranks = {{order.rank, 1}};
    work.errands.push_back(std::move(errand));
    wanted_.push_back({order, std::move(work)});
    begin();
}

void Arrivals::begin() {
    if (!wanted_.empty() && !fetcher_.busy()) fetcher_.start(wanted_.front().errand, 0);
}

std::optional<Arrivals::Arrived> Arrivals::take() {
    auto result = fetcher_.take();
    if (!result) return {};
    Arrived arrived{std::move(wanted_.front().order),
                    result->failures.empty() ? "" : result->failures.front().error};
    wanted_.pop_front();
    begin();
    return arrived;
}

}  // namespace fermata::noded
