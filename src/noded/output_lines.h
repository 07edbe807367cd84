// OutputLines cuts what one rank writes to one stream into pieces that end at a line's end, so that lines of
// several ranks stay whole. A line that is begun and not ended goes on its way after a moment: it may be a
// question.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fermata::noded {

class OutputLines {
  public:
    static constexpr int64_t kPatienceMs = 200;  // with a line that is begun
    static constexpr size_t kLongest = 32768;    // a longer line goes in pieces

    void add(std::string_view bytes, int64_t now_ms);
    // Nothing more comes: a begun line goes as it is.
    void end() { ended_ = true; }
    // The next piece, of at most kLongest bytes; empty = nothing that may go now.
    std::string take(int64_t now_ms);
    // ms until a begun line may go; -1: none waits.
    int rest(int64_t now_ms) const;
    size_t size() const { return bytes_.size() - start_; }

  private:
    bool may_go(int64_t now_ms) const { return ended_ || now_ms - since_ >= kPatienceMs; }
    std::string bytes_;
    size_t start_ = 0;   // first byte that has not been taken
    int64_t since_ = 0;  // the newest bytes came
    bool ended_ = false;
};

}  // namespace fermata::noded
