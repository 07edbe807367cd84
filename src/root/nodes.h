// Nodes is the tree as keeping sees it.
#pragma once

#include "keeping/account/nodes.h"
#include "tree/tree.h"

namespace fermata::root {

class Nodes : public keeping::Nodes {
  public:
    explicit Nodes(tree::Tree& tree) : tree_(tree) {}

    std::set<std::string> hosts() const override { return tree_.hosts(); }
    std::set<std::string> hosts_with_ranks() const override {
        std::set<std::string> hosts;
        for (auto& [id, node] : tree_.nodes())
            if (node.ranks > 0) hosts.insert(node.host);
        return hosts;
    }
    bool whole() const override { return tree_.whole(); }
    void tell(const wire::Message& message) override { tree_.broadcast(message); }

  private:
    tree::Tree& tree_;
};

}  // namespace fermata::root
