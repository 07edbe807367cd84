// The list of requests: found by halving, swept in one go.
#include "replay/requests.h"

#include <algorithm>

namespace fermata::replay {

Request* Requests::find(RequestNo no) {
    auto at = std::lower_bound(list_.begin(), list_.end(), no,
                               [](const Request& request, RequestNo wanted) { return request.no < wanted; });
    return at != list_.end() && at->no == no && at->stage != Stage::told ? &*at : nullptr;
}

void Requests::sweep() {
    auto told = [](const Request& request) { return request.stage == Stage::told; };
    // Mostly the oldest ones: nothing is moved for one in the middle until half of the list has gone.
    size_t gone = static_cast<size_t>(std::count_if(list_.begin(), list_.end(), told));
    if (gone * 2 >= list_.size()) list_.erase(std::remove_if(list_.begin(), list_.end(), told), list_.end());
}

}  // namespace fermata::replay
