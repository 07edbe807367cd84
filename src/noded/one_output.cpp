#include "noded/one_output.h"

#include <algorithm>

namespace fermata::noded {

void OneOutput::copy_is_made() {
    copied_ = true;
    said_.clear();
}

void OneOutput::copy_is_gone() {
    copied_ = false;
    said_.clear();
}

std::string_view OneOutput::wrote(std::string_view bytes) {
    const size_t again = std::min(expected_.size(), bytes.size());
    parted_ = parted_ || std::string_view(expected_).substr(0, again) != bytes.substr(0, again);
    expected_.erase(0, again);
    if (copied_) said_ += bytes;
    return bytes.substr(again);
}

std::string OneOutput::copy_goes_on(const std::string& copys) {
    const std::string gone = said_ + expected_;  // on its way since the copy was made
    const size_t both = std::min(gone.size(), copys.size());
    parted_ = parted_ || gone.compare(0, both, copys, 0, both) != 0;
    expected_ = gone.substr(both);
    copy_is_gone();
    return copys.substr(both);
}

}  // namespace fermata::noded
