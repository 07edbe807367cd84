#include "noded/output_lines.h"

#include <algorithm>

#include "base/invariant.h"

namespace fermata::noded {

void OutputLines::add(std::string_view bytes, int64_t now_ms) {
    if (start_ > 0 && start_ * 2 >= bytes_.size()) {
        bytes_.erase(0, start_);
        start_ = 0;
    }
    bytes_.append(bytes);
    since_ = now_ms;
}

std::string OutputLines::take(int64_t now_ms) {
    always(start_ <= bytes_.size(), "output that is taken before it has come");
    std::string_view here = std::string_view(bytes_).substr(start_);
    std::string_view piece = here.substr(0, kLongest);
    size_t line_end = piece.rfind('\n');
    if (line_end != piece.npos)
        piece = piece.substr(0, line_end + 1);
    else if (here.size() < kLongest && !may_go(now_ms))
        return {};
    always(!piece.empty() || here.empty(), "output that is taken, and stays");
    start_ += piece.size();
    std::string taken(piece);
    if (start_ == bytes_.size()) bytes_.clear(), start_ = 0;
    return taken;
}

int OutputLines::rest(int64_t now_ms) const {
    if (size() == 0) return -1;
    return static_cast<int>(std::clamp<int64_t>(since_ + kPatienceMs - now_ms, 0, kPatienceMs));
}

}  // namespace fermata::noded
