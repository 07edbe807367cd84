// Daemons is the tree as a launcher sees it that has started the node daemons.
#pragma once

#include <functional>
#include <string>

#include "launch/daemons.h"
#include "tree/tree.h"

namespace fermata::root {

class Daemons : public launch::Daemons {
  public:
    Daemons(tree::Tree& tree, std::function<void(const std::string& line)> on_death)
        : tree_(tree), on_death_(std::move(on_death)) {}

    void send(int daemon, const wire::Message& message) override { tree_.send(daemon, message); }
    void broadcast(const wire::Message& message) override { tree_.broadcast(message); }
    void expect(int daemon, size_t ranks) override { tree_.allow(daemon, static_cast<uint32_t>(ranks)); }
    size_t width() const override { return tree_.radix(); }
    void rank_died(const std::string& line) override { on_death_(line); }

  private:
    tree::Tree& tree_;
    std::function<void(const std::string& line)> on_death_;
};

}  // namespace fermata::root
