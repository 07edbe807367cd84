// The question who waits where, put to every rank by way of the node daemons, and what they answer.
#pragma once

#include <cstdint>
#include <string>

#include "tree/channel.h"
#include "wire/message.h"

namespace fermata::root {

class Inquiry {
  public:
    bool going_on() const { return end_ != 0; }
    void begin() {
        text_.clear();
        answers_ = 0;
        end_ = tree::now_ms() + kPatienceMs;
    }
    void heard(const wire::Diagnosis& answer) {
        if (!going_on()) return;
        if (text_.size() < kMost) text_ += answer.text;
        answers_ += answer.nodes;
    }
    bool complete(size_t nodes) const { return answers_ >= nodes; }
    bool done(size_t nodes) const { return complete(nodes) || tree::now_ms() >= end_; }
    void end() { end_ = 0; }
    const std::string& text() const { return text_; }

  private:
    static constexpr int64_t kPatienceMs = 8000;
    static constexpr size_t kMost = 100000;
    int64_t end_ = 0;
    size_t answers_ = 0;  // of nodes
    std::string text_;
};

}  // namespace fermata::root
