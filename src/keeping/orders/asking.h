// Asking is one question to the node daemons: what of some generations is in their memory? It keeps account
// of who has answered what. It sends nothing and waits for nothing.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/invariant.h"
#include "wire/message.h"

namespace fermata::keeping {

class Asking {
  public:
    // Answers of nodes about what they have, by host.
    using Answers = std::map<std::string, wire::Copies>;
    // `hosts`: who is there to answer.
    Asking(wire::AskCopies question, std::set<std::string> hosts)
        : question_(std::move(question)), waiting_(std::move(hosts)) {
        always(question_.number > 0, "a question to nodes without a number");
    }

    const wire::AskCopies& question() const { return question_; }
    // False: it answers another question.
    bool heard(const wire::Copies& answer) {
        if (answer.number != question_.number) return false;
        if (waiting_.erase(answer.host) > 0) answers_[answer.host] = answer;  // else it is said again
        return true;
    }
    // Nodes that are gone answer no more.
    void only(const std::set<std::string>& hosts) {
        std::erase_if(waiting_, [&](const std::string& host) { return hosts.count(host) == 0; });
    }
    bool done() const { return waiting_.empty(); }
    const Answers& answers() const { return answers_; }

  private:
    const wire::AskCopies question_;
    std::set<std::string> waiting_;
    Answers answers_;
};

}  // namespace fermata::keeping
