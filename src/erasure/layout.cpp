#include "erasure/layout.h"

namespace fermata::erasure {

bool Layout::bears(const std::vector<bool>& data_lost, const std::vector<bool>& parity_lost) const {
    always(data_lost.size() == members_ && parity_lost.size() == members_, "losses of another group");
    for (uint32_t s = 0; s < members_; ++s) {
        uint32_t lost = 0;
        for (uint32_t m = 0; m < members_; ++m)
            lost += is_data(position(Stripe{s}, Member{m})) ? data_lost[m] : parity_lost[m];
        if (lost > losses_) return false;
    }
    return true;
}

}  // namespace fermata::erasure
